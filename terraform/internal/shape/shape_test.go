package shape_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/terraform/internal/shape"
)

func parse(t testing.TB, text string) bridge.Node {
	t.Helper()
	n, err := bridge.ParseJSON([]byte(text))
	if err != nil {
		t.Fatalf("ParseJSON(%s): %v", text, err)
	}
	return n
}

// eachField calls visit for all fields, those of objects and lists included.
func eachField(path string, fields []shape.Field, visit func(path string, f shape.Field)) {
	for _, f := range fields {
		visit(path+f.Name, f)
		eachField(path+f.Name+".", f.Fields, visit)
	}
}

func TestEveryFieldIsDescribed(t *testing.T) {
	t.Parallel()
	for _, kind := range bridge.Kinds() {
		eachField(string(kind)+".", shape.Of(kind), func(path string, f shape.Field) {
			if f.Description == "" {
				t.Errorf("%s has no description", path)
			}
		})
	}
}

func TestFieldsHaveTheWordsAndPatternsOfTheAPI(t *testing.T) {
	t.Parallel()
	found := map[string]shape.Field{}
	for _, kind := range bridge.Kinds() {
		eachField(string(kind)+".", shape.Of(kind), func(path string, f shape.Field) { found[path] = f })
	}
	for _, tt := range []struct {
		path, good, bad string
	}{
		{"routes.ordering", "partition", "total"},
		{"targets.auth.type", "oauth2", "magic"},
		{"targets.http.timeout", "1m30s", "soon"},
		{"sources.max_body", "512KiB", "much"},
		{"sources.name", "github-1", "GitHub"},
		{"targets.http.timeout", "${env:TIMEOUT}", "90"},
		{"sources.scheme", "one-that-only-a-newer-bridge-knows", ""},
	} {
		f := found[tt.path]
		if wrong := f.Accepts(tt.good); wrong != "" {
			t.Errorf("%s: Accepts(%q) = %q", tt.path, tt.good, wrong)
		}
		if tt.bad != "" && f.Accepts(tt.bad) == "" {
			t.Errorf("%s: Accepts(%q) says nothing", tt.path, tt.bad)
		}
	}
	if !found["sources.scheme"].Required || !found["routes.target"].Required || found["sources.queue"].Required {
		t.Error("required fields are not those of the API")
	}
}

func TestSecretPaths(t *testing.T) {
	t.Parallel()
	got := shape.SecretPaths(shape.Of(bridge.KindTarget))
	want := []string{"auth.password", "auth.token", "auth.value", "auth.client_secret", "signing.secrets"}
	if !slices.Equal(got, want) {
		t.Errorf("SecretPaths = %q, want %q", got, want)
	}
}

func TestAnswersOfTheAPIHaveForms(t *testing.T) {
	t.Parallel()
	for _, answer := range []any{adminapi.Status{}, adminapi.Scheme{}} {
		data, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		doc := parse(t, string(data))
		for _, f := range shape.OfStruct(reflect.TypeOf(answer)) {
			if f.Form == shape.Free {
				t.Errorf("%T.%s has no form", answer, f.Name)
			}
		}
		if len(doc.Members) == 0 {
			t.Errorf("%T is empty", answer)
		}
	}
}

func TestNumbersKeepTheirText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"0", "1", "-7", "0.1", "2.5", "1000000", "123456789012345678901", "1e-9", "3.14159265358979323846264338327950288"} {
		v, odd := shape.Value(tftypes.DynamicPseudoType, parse(t, text))
		n, err := shape.Anything(v)
		if err != nil || len(odd) > 0 || n.Text != text && text != "1e-9" {
			t.Errorf("%s came back as %s, %v, %v", text, n.Text, odd, err)
		}
	}
}

func TestWhatNoAttributeHoldsIsNamed(t *testing.T) {
	t.Parallel()
	object := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"lanes": tftypes.Number, "rate": tftypes.Object{
		AttributeTypes: map[string]tftypes.Type{"burst": tftypes.Number}}, "spool": tftypes.Bool, "list": tftypes.List{ElementType: tftypes.String}}}
	_, odd := shape.Value(object, parse(t, `{"lanes":"${env:LANES}","rate":{"burst":"${env:B}"},"spool":"${env:S}","list":"x"}`))
	slices.Sort(odd)
	if want := []string{"lanes", "list", "rate.burst", "spool"}; !slices.Equal(odd, want) {
		t.Errorf("odd = %q, want %q", odd, want)
	}
}

func TestPatchMentionsOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ have, want, patch string }{
		{`{"a":1}`, `{"a":1}`, `null`},
		{`{"a":1,"b":2}`, `{"a":1,"b":3}`, `{"b":3}`},
		{`{"a":1,"b":2}`, `{"a":1}`, `{"b":null}`},
		{`{"a":{"x":1,"y":[1,2]}}`, `{"a":{"x":1,"y":[2]}}`, `{"a":{"y":[2]}}`},
		{`{"a":{"x":1}}`, `{"a":{}}`, `{"a":{"x":null}}`},
		{`{}`, `{"a":{}}`, `{"a":{}}`},
		{`{"a":1.0}`, `{"a":1}`, `null`},
		{`{"a":[null]}`, `{"a":[null,1]}`, `{"a":[null,1]}`},
	} {
		got := string(shape.Patch(parse(t, tt.have), parse(t, tt.want)).AppendJSON(nil))
		if got != tt.patch {
			t.Errorf("Patch(%s, %s) = %s, want %s", tt.have, tt.want, got, tt.patch)
		}
	}
}

// FuzzPatch: applied as the bridge does it, a patch makes of one document the
// other, and what neither has is left alone.
func FuzzPatch(f *testing.F) {
	f.Add(`{"a":1,"b":{"c":[1,null]}}`, `{"b":{"c":[2],"d":"x"}}`)
	f.Add(`{"a":{"b":{}}}`, `{"a":{"b":null,"c":{}}}`)
	f.Add(`{}`, `{"a":0.1e2}`)
	f.Fuzz(func(t *testing.T, one, other string) {
		have, err := bridge.ParseJSON([]byte(one))
		want, err2 := bridge.ParseJSON([]byte(other))
		if err != nil || err2 != nil || have.Kind != bridge.NodeMap || want.Kind != bridge.NodeMap || twice(have) || twice(want) {
			t.Skip("no two documents")
		}
		got := have.Clone()
		got.Set("of a newer bridge", bridge.Node{Kind: bridge.NodeBool, Text: "true"})
		if patch := shape.Patch(have, want); patch.Kind != bridge.NodeAbsent {
			got = got.Merged(patch)
		}
		if got.Member("of a newer bridge").Text != "true" {
			t.Errorf("Patch(%s, %s) took away what it does not know", one, other)
		}
		got.Remove("of a newer bridge")
		if !shape.Same(got, want) {
			t.Errorf("Patch(%s, %s) made %s", one, other, got.AppendJSON(nil))
		}
	})
}

// FuzzAnything: a free document survives the way to Terraform and back.
func FuzzAnything(f *testing.F) {
	f.Add(`{"detail":[null,true,1,0.1,"x",{"numeric":[">",5]}]}`)
	f.Add(`[[],{},1e400]`)
	f.Fuzz(func(t *testing.T, text string) {
		n, err := bridge.ParseJSON([]byte(text))
		if err != nil || twice(n) {
			t.Skip("no document")
		}
		v, odd := shape.Value(tftypes.DynamicPseudoType, n)
		back, err := shape.Anything(v)
		if err != nil || len(odd) > 0 || !shape.Same(n, back) && !huge(n) {
			t.Errorf("%s came back as %s, %v, %v", text, back.AppendJSON(nil), odd, err)
		}
	})
}

// twice says that a key stands twice somewhere: no resource has that.
func twice(n bridge.Node) (found bool) {
	n.Walk("", func(_ string, n *bridge.Node) {
		seen := map[string]bool{}
		for _, m := range n.Members {
			found = found || seen[m.Key]
			seen[m.Key] = true
		}
	})
	return found
}

// huge says that a number has more digits or another magnitude than Terraform
// keeps.
func huge(n bridge.Node) (found bool) {
	n.Walk("", func(_ string, n *bridge.Node) { found = found || n.Kind == bridge.NodeNumber && len(n.Text) > 100 })
	return found
}
