package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// layers lists what each package may import of ours. cmd and examples may
// import any of them; nothing may import cmd or examples. ARCHITECTURE.md
// draws it.
var layers = map[string]string{
	"signing": "", "bridge/queen": "", "bridge/aws": "", "bridge/sqlitefile": "",
	"bridge/queen/devbroker":   "bridge/sqlitefile",
	"bridge":                   "signing",
	"bridge/internal/describe": "",
	"bridge/filter":            "bridge",
	"bridge/configfile":        "bridge bridge/filter",
	"bridge/adminapi":          "bridge",
	"bridge/rules":             "bridge bridge/filter bridge/queen",
	"bridge/admin":             "bridge bridge/adminapi bridge/filter bridge/queen bridge/rules",
	"bridge/queen/queentest":   "bridge/queen",
	"ingress":                  "bridge bridge/queen bridge/sqlitefile signing",
	"dispatch":                 "bridge bridge/filter bridge/queen dispatch/format",
	"dispatch/format":          "bridge",
	"dispatch/exchange":        "bridge",
	"dispatch/httptarget":      "bridge dispatch dispatch/exchange signing",
	"dispatch/lambdatarget":    "bridge dispatch dispatch/exchange", "dispatch/lambdatarget/lambdatest": "",
	"dispatch/sendertest": "bridge dispatch",
}

// outsiders lists who of ours, beside cmd, may import what is not ours and
// would be a burden elsewhere: the function of queenbridge-lambda exports no
// traces.
var outsiders = map[string]string{
	"go.opentelemetry.io/": "dispatch", "go.opentelemetry.io/otel/sdk": "", "go.opentelemetry.io/otel/exporters": "",
}

// TestLayers proves that imports go one way.
func TestLayers(t *testing.T) {
	const root = "../.."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "testdata" {
			return fs.SkipDir // programs of tests
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(rel))
		if top, _, _ := strings.Cut(pkg, "/"); top == "cmd" || top == "examples" || top == "terraform" {
			return nil
		}
		checkImports(t, path, rel, pkg)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkImports(t *testing.T, path, rel, pkg string) {
	t.Helper()
	const module = "github.com/queenbridge/queenbridge/"
	allowed, known := layers[pkg]
	if !known {
		t.Errorf("%s: package is not in the layer table", pkg)
	}
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range f.Imports {
		imp, _ := strconv.Unquote(spec.Path.Value)
		if ours, ok := strings.CutPrefix(imp, module); ok && !strings.Contains(" "+allowed+" ", " "+ours+" ") {
			t.Errorf("%s: may not import %s", rel, ours)
		}
		for theirs, allowed := range outsiders {
			if strings.HasPrefix(imp, theirs) && pkg != allowed {
				t.Errorf("%s: may not import %s", rel, imp)
			}
		}
	}
}
