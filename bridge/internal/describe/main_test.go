package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDescriptionsAreTheCommentsWithTheNamesOfConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code := "package p\n\n// Thing is one thing.\n//\n// It has Parts.\ntype Thing struct {\n" +
		"\t// MaxParts bounds the Parts, as in <n>\n\t// (presets.md §1).\n\tMaxParts int `json:\"max_parts\"`\n" +
		"\tParts []Part `json:\"parts\"` // big\n\tHidden Other `json:\"-\"`\n}\n\n// Part belongs to Thing.\ntype Part struct{ Name string `json:\"name\"` }\n\n" +
		"type Other struct{ X int `json:\"x\"` }\n"
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := generate("shape", []string{"Thing"}, []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"Thing":          "One thing.\n\nIt has ` + "`parts`" + `.",`,
		`"Thing.MaxParts": "` + "`max_parts` bounds the `parts`" + `, as in \\<n>.",`,
		`"Thing.Parts":    "For type big.",`,
		`"Part":           "Belongs to Thing.",`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("generate = %s, want %s in it", got, want)
		}
	}
	if strings.Contains(string(got), "Other") || strings.Contains(string(got), "Hidden") {
		t.Errorf("generate = %s, want nothing of what is hidden", got)
	}
	if _, err := generate("shape", []string{"Nothing"}, []string{dir}); err == nil {
		t.Error("generate of an unknown type succeeds")
	}
}
