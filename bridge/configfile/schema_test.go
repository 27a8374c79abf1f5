package configfile_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/configfile"
)

// configSchema is the schema as an editor reads it.
func configSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	data, err := json.Marshal(bridge.ConfigSchema())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("config.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("config.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fits says what the schema has against a document.
func fits(t *testing.T, s *jsonschema.Schema, doc bridge.Node) error {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(doc.AppendJSON(nil))))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(value)
}

// TestTheSchemaTakesWhatTheProgramTakes: every file that is loaded without a
// problem, those of the examples and of deploy/ included.
func TestTheSchemaTakesWhatTheProgramTakes(t *testing.T) {
	for name, value := range map[string]string{"GITHUB_SECRET": "s3cret", "PORT_TEXT": "8090", "FIVE": "5"} {
		t.Setenv(name, value)
	}
	s := configSchema(t)
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, pattern := range []string{"../../examples/*/bridge.yaml", "../../deploy/*/bridge.yaml", "../../deploy/*/etc/bridge.yaml"} {
		more, _ := filepath.Glob(pattern)
		if len(more) == 0 {
			t.Errorf("no file %s", pattern)
		}
		files = append(files, more...)
	}
	taken := 0
	for _, file := range files {
		doc, err := configfile.ReadDocument(file)
		if err != nil {
			continue
		}
		_, err = configfile.Load(configfile.Options{Path: file})
		if _, refused := errors.AsType[*configfile.Error](err); refused && strings.HasPrefix(file, "testdata") || doc.Kind != bridge.NodeMap {
			continue
		}
		taken++
		if err := fits(t, s, doc); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	const least = 15
	if taken < least {
		t.Errorf("%d files, want %d at least", taken, least)
	}
}

func TestTheSchemaRefusesWhatAnEditorShouldMark(t *testing.T) {
	t.Parallel()
	s := configSchema(t)
	for _, doc := range []string{
		`{"sorces":[]}`, `{"log":{"level":"loud"}}`, `{"sources":[{"name":"a"}]}`, `{"sources":[{"scheme":"none"}]}`,
		`{"sources":[{"name":"a","scheme":"none","max_body":"10 megabytes"}]}`, `{"targets":[{"name":"a","http":{"url":"http://x","timeot":"5s"}}]}`,
		`{"routes":[{"name":"a","queue":"q","target":"t","ordering":"sometimes"}]}`, `{"queues":[{"name":"q","lease":"a while"}]}`,
		`{"admin":{"tokens":[{"name":"a","role":"king","token":"x"}]}}`,
	} {
		n, err := bridge.ParseJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		if fits(t, s, n) == nil {
			t.Errorf("the schema takes %s", doc)
		}
	}
}
