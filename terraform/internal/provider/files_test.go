package provider_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/queenbridge/queenbridge/bridge"
)

// root is terraform/.
const root = "../.."

// copied is terraform/ with its modules and examples, where commands may leave
// files.
func copied(t *testing.T, endpoint, example string) *workspace {
	t.Helper()
	w := newWorkspace(t, endpoint)
	for _, dir := range []string{"modules", "examples"} {
		if err := os.CopyFS(filepath.Join(w.dir, dir), os.DirFS(filepath.Join(root, dir))); err != nil {
			t.Fatal(err)
		}
	}
	w.dir = filepath.Join(w.dir, example)
	return w
}

func TestConfigurationIsFormatted(t *testing.T) {
	t.Parallel()
	if out, code := copied(t, "http://127.0.0.1:9", ".").terraform("fmt", "-check", "-recursive", "-diff"); code != 0 {
		t.Errorf("terraform fmt:\n%s", out)
	}
}

// TestExamplesOfTheDocumentsAreValid: each snippet by itself.
func TestExamplesOfTheDocumentsAreValid(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, "examples", "*", "*", "*.tf"))
	if err != nil || len(files) < 8 {
		t.Fatalf("%d snippets, %v", len(files), err)
	}
	for _, file := range files {
		hcl, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		newWorkspace(t, "http://127.0.0.1:9").write(string(hcl)).do("validate")
	}
}

// TestExamplesApply: the modules webhook and fanout are in them.
func TestExamplesApply(t *testing.T) {
	t.Parallel()
	p := start(t, "", "GITHUB_WEBHOOK_SECRET=secret-of-github", "STRIPE_SECRET=whsec_c2VjcmV0", "CI_SIGNING_SECRET=whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
	url, bodies := function(t)
	for _, tt := range []struct {
		name string
		vars []string
	}{
		{"basic", []string{"-var", "function_url=" + url}},
		{"stripe-to-lambda", nil},
	} {
		w := copied(t, p.admin, filepath.Join("examples", tt.name))
		w.do("get")
		w.do("validate")
		w.do(append([]string{"apply", "-auto-approve"}, tt.vars...)...)
		if out, code := w.terraform(append([]string{"plan", "-detailed-exitcode"}, tt.vars...)...); code != 0 {
			t.Errorf("%s: plan = %d\n%s", tt.name, code, out)
		}
	}
	if status := p.webhook("github", "secret-of-github", `{"through":"the module"}`); status != http.StatusOK {
		t.Fatalf("webhook = %d", status)
	}
	if got := next(t, bodies); got != `{"through":"the module"}` {
		t.Errorf("the function got %s", got)
	}
}

func TestExampleOfAnOrganizationApplies(t *testing.T) {
	t.Parallel()
	p := start(t, "", "CI_SIGNING_SECRET=whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
	w := copied(t, p.admin, "examples/github-organization")
	w.do("get")
	w.do("apply", "-auto-approve", "-var", "webhook_secret=secret-of-the-organization")
	if out, code := w.terraform("plan", "-detailed-exitcode", "-var", "webhook_secret=x"); code != 0 {
		t.Errorf("plan = %d\n%s", code, out)
	}
	if status := p.webhook("github", "secret-of-the-organization", `{"repository":{"full_name":"a/b"}}`); status != http.StatusOK {
		t.Errorf("webhook = %d", status)
	}
	for _, route := range []string{"pushes-to-ci", "audit", "chat"} {
		p.document(bridge.KindRoute, route)
	}
}

// TestModulesReferToWhatTheyHave reads the modules without their providers: that
// of AWS cannot be had everywhere.
func TestModulesReferToWhatTheyHave(t *testing.T) {
	t.Parallel()
	modules, err := filepath.Glob(filepath.Join(root, "modules", "*"))
	if err != nil || len(modules) < 3 {
		t.Fatalf("modules = %q, %v", modules, err)
	}
	for _, dir := range modules {
		m := parseModule(t, dir)
		for _, name := range m.used {
			if !slices.Contains(m.declared, name) {
				t.Errorf("%s: %s is not declared", dir, name)
			}
		}
		for _, name := range m.declared {
			if strings.HasPrefix(name, "var.") && !slices.Contains(m.used, name) {
				t.Errorf("%s: %s is not used", dir, name)
			}
		}
		for _, name := range m.undescribed {
			t.Errorf("%s: %s has no description", dir, name)
		}
	}
}

type parsedModule struct{ declared, used, undescribed []string }

func parseModule(t *testing.T, dir string) parsedModule {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.tf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files, %v", dir, err)
	}
	var m parsedModule
	for _, name := range files {
		f, diags := hclparse.NewParser().ParseHCLFile(name)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		body, ok := f.Body.(*hclsyntax.Body)
		if !ok {
			t.Fatalf("%s: %T", name, f.Body)
		}
		for _, block := range body.Blocks {
			m.addBlock(block)
		}
	}
	return m
}

func (m *parsedModule) addBlock(b *hclsyntax.Block) {
	switch name := strings.Join(b.Labels, "."); b.Type {
	case "variable", "output":
		if b.Type == "variable" {
			m.declared = append(m.declared, "var."+name)
		}
		if b.Body.Attributes["description"] == nil {
			m.undescribed = append(m.undescribed, b.Type+"."+name)
		}
	case "resource":
		m.declared = append(m.declared, name)
	case "data":
		m.declared = append(m.declared, "data."+name)
	case "locals":
		for name := range b.Body.Attributes {
			m.declared = append(m.declared, "local."+name)
		}
	}
	m.addUses(b)
}

// addUses walks the expressions of a block. The type of a variable is none.
func (m *parsedModule) addUses(b *hclsyntax.Block) {
	iterator := ""
	if b.Type == "dynamic" {
		iterator = b.Labels[0]
	}
	for name, attribute := range b.Body.Attributes {
		if b.Type == "variable" && name == "type" {
			continue
		}
		for _, use := range attribute.Expr.Variables() {
			if name := nameOf(use); name != "" && use.RootName() != iterator {
				m.used = append(m.used, name)
			}
		}
	}
	for _, below := range b.Body.Blocks {
		m.addUses(below)
	}
}

// nameOf is what a reference refers to, as a declaration names it.
func nameOf(use hcl.Traversal) string {
	parts := []string{use.RootName()}
	for _, step := range use[1:] {
		attribute, ok := step.(hcl.TraverseAttr)
		if !ok {
			break
		}
		parts = append(parts, attribute.Name)
	}
	want := 2
	switch parts[0] {
	case "each", "statement", "vpc_config", "self", "path":
		return ""
	case "data":
		want = 3
	}
	return strings.Join(parts[:min(want, len(parts))], ".")
}
