package provider_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
)

// writeOnlyHCL has its secrets from ephemeral variables, as a vault would give
// them.
const writeOnlyHCL = `
variable "secret" {
  type      = string
  ephemeral = true
}

resource "queenbridge_source" "s" {
  name               = %[1]q
  scheme             = "github"
  secrets_wo         = [var.secret]
  secrets_wo_version = %[2]d
}

resource "queenbridge_target" "t" {
  name = %[1]q
  http = { url = "http://127.0.0.1:9/" }
  auth = { type = "bearer", token_wo = var.secret, token_wo_version = %[2]d }
  signing = { secrets_wo = ["whsec_${base64encode(var.secret)}"], secrets_wo_version = %[2]d }
}
`

func TestWriteOnlySecretsAreInNoState(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	name := unique("writeonly")
	w := newWorkspace(t, p.admin).write(fmt.Sprintf(writeOnlyHCL, name, 1))
	const first, second = "first-write-only-secret-0815", "second-write-only-secret-4711"
	said := w.do("apply", "-auto-approve", "-var", "secret="+first)
	if status := p.webhook(name, first, `{}`); status != http.StatusOK {
		t.Fatalf("webhook = %d, want the secret in use", status)
	}
	if out, code := w.terraform("plan", "-detailed-exitcode", "-var", "secret="+second); code != 0 {
		t.Fatalf("plan with another secret and the same version = %d, want nothing to do\n%s", code, out)
	}

	t.Log("a new version")
	w.write(fmt.Sprintf(writeOnlyHCL, name, 2))
	said += w.do("apply", "-auto-approve", "-var", "secret="+second)
	if old, fresh := p.webhook(name, first, `{}`), p.webhook(name, second, `{}`); old != http.StatusUnauthorized || fresh != http.StatusOK {
		t.Errorf("webhooks = %d and %d, want the second secret in use", old, fresh)
	}

	t.Log("changed by somebody else")
	p.patch(bridge.KindSource, name, `{"secrets":["somebody-elses"]}`)
	out, code := w.terraform("plan", "-detailed-exitcode", "-var", "secret="+second)
	if code != 2 {
		t.Fatalf("plan = %d, want the change seen\n%s", code, out)
	}
	w.says(out, "+ secrets_wo_version = 2")
	said += out + w.do("apply", "-auto-approve", "-var", "secret="+second)
	if status := p.webhook(name, second, `{}`); status != http.StatusOK {
		t.Errorf("webhook = %d, want the secret written again", status)
	}

	t.Log("from write-only to plain, and none")
	hcl := strings.NewReplacer("ephemeral = true", "ephemeral = false", "secrets_wo         =", "secrets         =", "secrets_wo_version = 2", "").
		Replace(fmt.Sprintf(writeOnlyHCL, name, 2))
	hcl = strings.Replace(hcl, `secrets_wo = ["whsec_${base64encode(var.secret)}"], `, "", 1)
	hcl = strings.Replace(hcl, `  signing = { , `, "  signing = { ", 1)
	w.write(hcl)
	w.do("apply", "-auto-approve", "-var", "secret="+second)
	if doc := p.document(bridge.KindTarget, name); strings.Contains(doc, `"secrets"`) {
		t.Errorf("a secret that was taken away is still there: %s", doc)
	}
	state := w.state()
	if !strings.Contains(state, second) {
		t.Error("a plain secret is in the state, as any other argument: this test looks at the wrong file")
	}
	if strings.Contains(state, first) || strings.Contains(said, first) || strings.Contains(said, second) {
		t.Error("a write-only secret is in the state or was printed")
	}
}

func TestStateOfWriteOnlySecretsHoldsNone(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	w := newWorkspace(t, p.admin).write(fmt.Sprintf(writeOnlyHCL, unique("stateless"), 1))
	w.env = append(w.env, "TF_LOG_PROVIDER=TRACE")
	const secret = "a-secret-that-nothing-holds"
	said := w.do("apply", "-auto-approve", "-var", "secret="+secret) + w.do("show", "-json") + w.state()
	if strings.Contains(said, secret) || strings.Contains(said, adminToken) {
		t.Error("a secret is in the state or in the log")
	}
}

// TestImportOfWriteOnlySecrets: what was there cannot be compared, so it is
// written once.
func TestImportOfWriteOnlySecrets(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	name := unique("imported")
	const secret = "a-secret-before-the-import"
	hcl := fmt.Sprintf(writeOnlyHCL, name, 1)
	newWorkspace(t, p.admin).write(hcl).do("apply", "-auto-approve", "-var", "secret="+secret)
	before := p.document(bridge.KindTarget, name)
	w := newWorkspace(t, p.admin).write(hcl)
	for _, address := range []string{"queenbridge_source.s", "queenbridge_target.t"} {
		w.do("import", "-var", "secret="+secret, address, name)
	}
	w.says(w.do("apply", "-auto-approve", "-var", "secret="+secret), "0 added, 2 changed, 0 destroyed")
	if out, code := w.terraform("plan", "-detailed-exitcode", "-var", "secret="+secret); code != 0 {
		t.Errorf("plan = %d\n%s", code, out)
	}
	if after := p.document(bridge.KindTarget, name); after != before || strings.Contains(w.state(), secret) {
		t.Errorf("target = %s, want %s and no secret in the state", after, before)
	}
}

func TestSecretsChangedElsewhereAreDrift(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	name := unique("drifted")
	const secret = "the-first-secret"
	w := newWorkspace(t, p.admin).write(pathHCL(name, "http://127.0.0.1:9/", ""))
	w.apply()
	for _, patch := range []string{`{"secrets":["other"]}`, `{"secrets":["${env:FROM_ENV}"]}`, `{"secrets":null}`} {
		if strings.Contains(patch, "null") {
			patch = `{"scheme":"none","secrets":null}`
		}
		p.patch(bridge.KindSource, name, patch)
		w.differs("queenbridge_source.s will be updated in-place", "secrets     = (sensitive value)")
		if said := w.apply(); strings.Contains(said, secret) {
			t.Error("a secret was printed")
		}
		w.clean()
		if status := p.webhook(name, secret, `{}`); status != http.StatusOK {
			t.Errorf("after %s: webhook = %d, want the secret written again", patch, status)
		}
	}
}

func TestSecretArgumentsExcludeEachOther(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ arguments, want string }{
		{`secrets = ["a"]` + "\n" + `secrets_wo = ["a"]` + "\nsecrets_wo_version = 1", "secrets_wo: excludes secrets"},
		{`secrets_wo = ["a"]`, "secrets_wo: needs secrets_wo_version"},
		{`secrets_wo_version = 1`, "secrets_wo_version: has no effect without secrets_wo"},
	} {
		w := newWorkspace(t, "http://127.0.0.1:9").write("resource \"queenbridge_source\" \"s\" {\n  name = \"s\"\n  scheme = \"github\"\n" + tt.arguments + "\n}\n")
		w.fails([]string{tt.want}, "validate")
	}
}
