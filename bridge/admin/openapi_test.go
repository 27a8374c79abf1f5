package admin_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
)

// openAPI is the document as it is served.
func openAPI(t *testing.T) map[string]any {
	t.Helper()
	a := newAPI(t, nil)
	status, _, body := a.call("GET", "/v1/openapi.json", "")
	var doc map[string]any
	if err := json.Unmarshal([]byte(body), &doc); err != nil || status != http.StatusOK {
		t.Fatalf("the document: %d, %v", status, err)
	}
	return doc
}

// TestEveryPartOfTheDocumentIsDescribed: operations, parameters, answers and
// every field of every schema.
func TestEveryPartOfTheDocumentIsDescribed(t *testing.T) {
	t.Parallel()
	undescribed(t, "", openAPI(t))
}

// undescribed reports, below a place of the document, what lacks a description.
func undescribed(t *testing.T, place string, node any) {
	t.Helper()
	switch n := node.(type) {
	case []any:
		for _, one := range n {
			undescribed(t, place+"[]", one)
		}
	case map[string]any:
		for name, one := range n {
			at := place + "." + name
			undescribed(t, at, one)
			fields, _ := one.(map[string]any)
			if name != "properties" && name != "parameters" && name != "responses" && name != "schemas" {
				continue
			}
			for field, value := range fields {
				part, _ := value.(map[string]any)
				if text, _ := part["description"].(string); text == "" {
					t.Errorf("%s.%s has no description", at, field)
				}
			}
		}
		if id, ok := n["operationId"]; ok && (n["description"] == "" || n["summary"] == "") {
			t.Errorf("%s: operation %s has no description", place, id)
		}
	}
}

// TestReferencesOfTheDocumentLeadSomewhere: each $ref is of a schema that there
// is.
func TestReferencesOfTheDocumentLeadSomewhere(t *testing.T) {
	t.Parallel()
	doc := openAPI(t)
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	var walk func(any)
	walk = func(node any) {
		switch n := node.(type) {
		case []any:
			for _, one := range n {
				walk(one)
			}
		case map[string]any:
			if to, ok := n["$ref"].(string); ok {
				if schemas[strings.TrimPrefix(to, "#/components/schemas/")] == nil {
					t.Errorf("%s leads nowhere", to)
				}
			}
			for _, one := range n {
				walk(one)
			}
		}
	}
	walk(doc)
	if path := os.Getenv("OPENAPI_OUT"); path != "" {
		data, _ := json.MarshalIndent(doc, "", " ")
		_ = os.WriteFile(path, data, 0o600)
	}
}
