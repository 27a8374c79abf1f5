package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryKnownProblemHasItsTest: testdata/problems.txt of a package names one
// for each, and none for two.
func TestEveryKnownProblemHasItsTest(t *testing.T) {
	t.Parallel()
	for _, about := range []string{"../../ingress", "../../dispatch"} {
		list, err := os.ReadFile(filepath.Join(about, "testdata/problems.txt"))
		if err != nil {
			t.Fatal(err)
		}
		checkProblems(t, about, string(list))
	}
}

// checkProblems checks a list whose folders are relative to one.
func checkProblems(t *testing.T, about, list string) {
	t.Helper()
	tests, taken := map[string]map[string]bool{}, map[string]string{}
	for line := range strings.Lines(list) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSpace(line), " | ")
		if len(fields) != 3 {
			t.Fatalf("%q: want symptom | folder | test", line)
		}
		symptom, dir, name := fields[0], filepath.Join(about, fields[1]), fields[2]
		if tests[dir] == nil {
			tests[dir] = testsIn(t, dir)
		}
		if !tests[dir][name] {
			t.Errorf("%s: there is no %s in %s", symptom, name, dir)
		}
		if other := taken[dir+name]; other != "" {
			t.Errorf("%s has the test of %s", symptom, other)
		}
		taken[dir+name] = symptom
	}
}

// testsIn are the names of the tests of a folder.
func testsIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, path := range paths {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				found[fn.Name.Name] = true
			}
		}
	}
	return found
}
