package signing_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/queenbridge/queenbridge/signing"
)

// leaky are functions whose time tells where two values differ.
var leaky = []string{"bytes.Equal", "bytes.Compare", "slices.Equal", "slices.Compare", "reflect.DeepEqual"}

// noProof are the files that judge no request: keys of JSON, the making of
// verifiers, the senders' side.
var noProof = []string{"jsontext.go", "new.go", "forge.go"}

// secretName is what a value is called that an attacker guesses at.
var secretName = regexp.MustCompile(`(?i)(secret|signature|mac|digest|token|password|credential)s?$`)

// "Timing leak": whoever compares signatures or tokens byte by byte tells an
// attacker how much of a guess is right. What is secret is compared by
// crypto/subtle, and by nothing else.
func TestSecretsAreComparedInConstantTime(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no source: %v", err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || slices.Contains(noProof, name) {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for leak := range leaks(file) {
			t.Errorf("%s: %s takes the time that tells where they differ: use crypto/subtle", fset.Position(leak.Pos()), types.ExprString(leak))
		}
	}
}

// leaks are the expressions of a file that compare secrets in variable time.
func leaks(file *ast.File) map[ast.Expr]bool {
	found := make(map[ast.Expr]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		switch e := n.(type) {
		case *ast.CallExpr:
			if slices.Contains(leaky, types.ExprString(e.Fun)) {
				found[e] = true
			}
		case *ast.BinaryExpr:
			if (e.Op == token.EQL || e.Op == token.NEQ) && !known(e.X) && !known(e.Y) &&
				(secretName.MatchString(types.ExprString(e.X)) || secretName.MatchString(types.ExprString(e.Y))) {
				found[e] = true
			}
		}
		return true
	})
	return found
}

// constantName is what constants are called.
var constantName = regexp.MustCompile(`^(nil|kind|max|Reason|secretsNone)`)

// known is a value that everybody may know: one written in the source.
func known(e ast.Expr) bool {
	name, isName := e.(*ast.Ident)
	_, isLiteral := e.(*ast.BasicLit)
	return isLiteral || isName && constantName.MatchString(name.Name)
}

func TestAComparisonOfSecretsIsFound(t *testing.T) {
	t.Parallel()
	const source = `package p
func f(secret, mac, want []byte, token string) bool {
	return bytes.Equal(mac, want) || string(secret) == token || token != "" || mac == nil
}`
	file, err := parser.ParseFile(token.NewFileSet(), "", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := leaks(file); len(got) != 2 {
		t.Errorf("%d leaks found, want bytes.Equal and ==", len(got))
	}
}

// "Header missing": nginx drops headers with an underscore in their name.
func TestNoSchemeNeedsAHeaderThatProxiesDrop(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, p := range signing.Presets() {
		o := signing.Options{Scheme: p.Name}
		for _, name := range slices.Concat(p.KeepHeaders(o), p.CredentialHeaders(o)) {
			if checked++; strings.Contains(name, "_") {
				t.Errorf("%s needs the header %s", p.Name, name)
			}
		}
	}
	if checked < 100 {
		t.Errorf("%d headers were looked at, want those of all presets", checked)
	}
}
