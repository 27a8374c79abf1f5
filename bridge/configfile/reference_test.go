package configfile_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/configfile"
)

const referring = `
sources:
  - {name: a, scheme: github, secrets: ["${vault:prod/github#key}", "${vault:prod/github#key}"]}
`

// TestFurtherKindsOfReferenceAreAsked: with what stands after the colon, once
// for each place, and again by each load.
func TestFurtherKindsOfReferenceAreAsked(t *testing.T) {
	t.Parallel()
	var asked []string
	o := configfile.Options{Path: "bridge.yaml", Data: []byte(referring), References: map[string]configfile.Lookup{
		"vault": func(name string) (string, error) {
			asked = append(asked, name)
			return "s3cret", nil
		},
	}}
	for range 2 {
		r, err := configfile.Load(o)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Config.Sources[0].Secrets[1].Reveal(); got != "s3cret" || len(r.Warnings) != 0 {
			t.Errorf("the secret is %q, warnings %v", got, r.Warnings)
		}
		if got := r.Written("sources[0].secrets[0]"); got != "${vault:prod/github#key}" {
			t.Errorf("Written = %q", got)
		}
	}
	if len(asked) != 4 || slices.ContainsFunc(asked, func(name string) bool { return name != "prod/github#key" }) {
		t.Errorf("asked for %q", asked)
	}
}

func TestAFurtherReferenceThatFailsIsAProblemOfItsField(t *testing.T) {
	t.Parallel()
	lookups := map[string]configfile.Lookup{"vault": func(string) (string, error) { return "", errors.New("read secret: denied") }}
	_, err := configfile.Load(configfile.Options{Path: "bridge.yaml", Data: []byte(referring), References: lookups})
	want := []string{
		"bridge.yaml:3: sources[0].secrets[0]: read secret: denied",
		"bridge.yaml:3: sources[0].secrets[1]: read secret: denied",
	}
	if diff := cmp.Diff(want, lines(t, err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = configfile.Load(configfile.Options{Path: "bridge.yaml", Data: []byte("log: {level: \"${vualt:x}\"}\n"), References: lookups})
	want = []string{"bridge.yaml:1: log.level: ${vualt:x} is no reference: use ${env:NAME}, ${file:PATH} or ${vault:…}; a literal ${ is written $${"}
	if diff := cmp.Diff(want, lines(t, err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFilesThatReferencesNameAreListedWithoutBeingRead(t *testing.T) {
	t.Parallel()
	doc, err := bridge.ParseJSON([]byte(`{"a":["${file:/abs/one}","x${file:two}y${file:/abs/three}"],"b":"$${file:/no}","c":"${env:FILE}","d":"${file:/open","e":7}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/abs/one", "/dir/two", "/abs/three"}
	if diff := cmp.Diff(want, configfile.ReferredFiles("/dir", doc)); diff != "" {
		t.Errorf("ReferredFiles (-want +got):\n%s", diff)
	}
}
