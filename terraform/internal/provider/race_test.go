package provider_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
)

func targetHCL(name, url string) string {
	return fmt.Sprintf("resource \"queenbridge_target\" \"t\" {\n  name = %q\n  http = { url = %q }\n}\n", name, url)
}

// TestApplyOfAnOldPlanOverwritesNothing: what was changed after the plan was
// made is said, and stays.
func TestApplyOfAnOldPlanOverwritesNothing(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	name := unique("raced")
	one := newWorkspace(t, p.admin).write(targetHCL(name, "http://x.example.com/0"))
	one.apply()
	two := newWorkspace(t, p.admin).write(targetHCL(name, "http://x.example.com/0"))
	two.do("import", "queenbridge_target.t", name)

	one.write(targetHCL(name, "http://x.example.com/1")).do("plan", "-out", "plan")
	two.write(targetHCL(name, "http://x.example.com/2")).do("plan", "-out", "plan")
	one.do("apply", "plan")
	two.fails([]string{"Changed by somebody else", "by QUEENBRIDGE_ADMIN_TOKEN: http.url", "Nothing was written"}, "apply", "plan")
	if doc := p.document(bridge.KindTarget, name); !strings.Contains(doc, "http://x.example.com/1") {
		t.Errorf("target = %s, want what the first apply wrote", doc)
	}
	two.differs(`"http://x.example.com/1" -> "http://x.example.com/2"`)

	t.Log("destroying what was changed")
	two.do("plan", "-destroy", "-out", "plan")
	p.patch(bridge.KindTarget, name, `{"concurrency":9}`)
	two.fails([]string{"Changed by somebody else", "concurrency", "Nothing was written"}, "apply", "plan")
	p.document(bridge.KindTarget, name)
	two.destroy()
	p.gone(bridge.KindTarget, name)
}

// TestApplyOfAnOldPlanWhereNothingDiffers: another version alone is no reason to
// plan again, of write-only secrets neither.
func TestApplyOfAnOldPlanWhereNothingDiffers(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	name := unique("renewed")
	source := func(lanes int) string {
		return fmt.Sprintf("resource \"queenbridge_source\" \"s\" {\n  name = %q\n  scheme = \"github\"\n  lanes = %d\n  secrets_wo = [\"a-secret\"]\n  secrets_wo_version = 1\n}\n", name, lanes)
	}
	thereAndBack := func() {
		p.patch(bridge.KindSource, name, `{"max_in_flight":9}`)
		p.patch(bridge.KindSource, name, `{"max_in_flight":null}`)
	}
	w := newWorkspace(t, p.admin).write(source(4))
	w.apply()
	w.write(source(8)).do("plan", "-out", "plan")
	thereAndBack()
	w.do("apply", "plan")
	if doc := p.document(bridge.KindSource, name); !strings.Contains(doc, `"lanes":8`) {
		t.Errorf("source = %s, want the plan applied", doc)
	}
	w.do("plan", "-destroy", "-out", "plan")
	thereAndBack()
	w.do("apply", "plan")
	p.gone(bridge.KindSource, name)
}

// TestAppliesAtOnce: of several that make or change the same resource one wins,
// whole, and the others say so.
func TestAppliesAtOnce(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	name := unique("contested")
	const n = 4
	all := make([]*workspace, n)
	for i := range all {
		all[i] = newWorkspace(t, p.admin).write(targetHCL(name, fmt.Sprintf("http://x.example.com/%d", i)))
	}
	winner := func(loser string) int {
		won := -1
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i, w := range all {
			wg.Go(func() {
				out, code := w.terraform("apply", "-auto-approve")
				mu.Lock()
				defer mu.Unlock()
				switch {
				case code == 0 && won < 0:
					won = i
				case code == 0:
					t.Errorf("two applies made the same resource:\n%s", out)
				default:
					w.says(out, loser)
				}
			})
		}
		wg.Wait()
		if won < 0 {
			t.Fatal("no apply won")
		}
		return won
	}
	won := winner("Already there")
	if doc := p.document(bridge.KindTarget, name); !strings.Contains(doc, fmt.Sprintf("http://x.example.com/%d", won)) {
		t.Errorf("target = %s, want what workspace %d wrote", doc, won)
	}
	all[won].clean()
}

// TestTwoHundredResourcesInOneApply: with Terraform's own bound of parallel
// operations.
func TestTwoHundredResourcesInOneApply(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	const each = 50
	prefix := unique("many")
	w := newWorkspace(t, p.admin).write(fmt.Sprintf(`
locals {
  names = toset([for i in range(%[2]d) : format("%[1]s-%%03d", i)])
}

resource "queenbridge_queue" "q" {
  for_each = local.names
  name     = each.key
  lease    = "30s"
}

resource "queenbridge_source" "s" {
  for_each = local.names
  name     = each.key
  scheme   = "github"
  secrets  = ["secret-of-${each.key}"]
  queue    = queenbridge_queue.q[each.key].name
}

resource "queenbridge_target" "t" {
  for_each = local.names
  name     = each.key
  http     = { url = "http://127.0.0.1:9/${each.key}" }
}

resource "queenbridge_route" "r" {
  for_each = local.names
  name     = each.key
  queue    = queenbridge_source.s[each.key].queue
  target   = queenbridge_target.t[each.key].name
  paused   = true
}
`, prefix, each))
	w.says(w.do("apply", "-auto-approve", "-parallelism=16"), "Apply complete! Resources: 200 added")
	w.clean()
	for _, kind := range bridge.Kinds() {
		found := 0
		for r, err := range p.api().List(t.Context(), kind) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(r.Name(), prefix) {
				found++
			}
		}
		if found != each {
			t.Errorf("%d %s, want %d", found, kind, each)
		}
	}
	name := fmt.Sprintf("%s-%03d", prefix, each-1)
	if status := p.webhook(name, "secret-of-"+name, `{}`); status != http.StatusOK {
		t.Errorf("webhook = %d", status)
	}
	if realQueen() != "" { // the others share it; all routes drain at once
		w.do("destroy", "-auto-approve", "-parallelism=64")
	}
}

// TestIdenticalCreateIsTakenOver: an apply whose answer was lost made the
// resource; the next one finds it made.
func TestIdenticalCreateIsTakenOver(t *testing.T) {
	t.Parallel()
	p := start(t, "")
	name := unique("made")
	doc := json.RawMessage(`{"http":{"url":"http://x.example.com/"}}`)
	if _, err := p.api().Put(t.Context(), bridge.KindTarget, name, doc, writeAny); err != nil {
		t.Fatal(err)
	}
	w := newWorkspace(t, p.admin).write(targetHCL(name, "http://x.example.com/"))
	w.apply()
	w.clean()
}
