package dispatch_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
)

// propagation is within what every process follows a pause.
const propagation = 3100 * time.Millisecond

func (k *kit) states(want dispatch.State, all ...*process) {
	k.Helper()
	for i, p := range all {
		for _, s := range p.Status() {
			if s.State != want {
				k.Errorf("process %d: %+v, want %s", i, s, want)
			}
		}
	}
}

// user-problems.md: "state is never the only copy of paused".
func TestPausedRouteStaysPausedInEveryProcess(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.statuses(500)
		a, b := k.start(nil, r), k.start(nil, r)
		k.push("q", "p", `{"retried":1}`)
		k.wait(time.Second)
		k.states(dispatch.StatePopping, a, b)
		if err := a.PauseRoute(k.Context(), "r", dispatch.PauseInfo{Reason: "the shop \x00moves", By: "alice"}); err != nil {
			t.Fatal(err)
		}
		k.states(dispatch.StatePaused, a)
		k.wait(propagation)
		k.states(dispatch.StatePaused, a, b)
		if s := b.Status()[0]; !strings.Contains(s.Detail, "alice") || !strings.Contains(s.Detail, "the shop  moves") || s.Since.IsZero() {
			t.Errorf("status = %+v, want who and why", s)
		}
		if b.metric(t, "paused", "kind=route", "name=r") != 1 {
			t.Error("the metric does not show the pause")
		}
		k.push("q", "p", `{"fresh":1}`)
		k.wait(time.Hour)
		if n := len(k.fn.all()); n != 1 {
			t.Errorf("%d calls, want neither the retry nor the new event", n)
		}
		a.stop()
		b.stop()
		c := k.start(nil, r)
		k.wait(time.Hour)
		k.states(dispatch.StatePaused, c)
		if n := len(k.fn.all()); n != 1 {
			t.Errorf("%d calls after a restart", n)
		}
		// Somebody without a dispatcher resumes it.
		if err := dispatch.NewPauses(k.client).ResumeRoute(k.Context(), "r"); err != nil {
			t.Fatal(err)
		}
		k.wait(propagation + time.Second)
		k.states(dispatch.StatePopping, c)
		k.wait(time.Minute)
		if n := len(k.fn.all()); n != 4 || c.metric(t, "paused") != 0 {
			t.Errorf("%d calls, want 4; paused %v", n, c.metric(t, "paused"))
		}
		k.settledAll(r)
		c.stop()
	})
}

func TestPauseLetsCallsFinishAndGivesTheRestBack(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"route", "target"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r, o := testRoute("r", "q"), orderedRoute("o", "q")
				r.DetachAfter, r.Concurrency = 0, 2
				k.fn.answers(slowly(5 * time.Second))
				p := k.start(nil, r, o)
				k.push("q", "p", `{"n":1}`, `{"n":2}`, `{"n":3}`)
				k.wait(time.Second)
				pause := func(names ...string) {
					for _, name := range names {
						err := p.PauseRoute(k.Context(), name, dispatch.PauseInfo{By: "bob"})
						if kind == "target" {
							err = p.PauseTarget(k.Context(), name, dispatch.PauseInfo{By: "bob"})
						}
						if err != nil {
							t.Fatal(err)
						}
					}
				}
				names := []string{"r", "o"}
				if kind == "target" {
					names = []string{"fn"}
				}
				pause(names...)
				k.wait(10 * time.Minute)
				if n := len(k.fn.all()); n != 3 {
					t.Errorf("%d calls, want the three that ran", n)
				}
				for _, name := range names {
					resume := p.ResumeRoute
					if kind == "target" {
						resume = p.ResumeTarget
					}
					if err := resume(k.Context(), name); err != nil {
						t.Fatal(err)
					}
				}
				k.wait(10 * time.Minute)
				for _, body := range []string{`{"n":1}`, `{"n":2}`, `{"n":3}`} {
					if n := len(k.fn.of(body)); n != 2 {
						t.Errorf("%s: %d calls, want one per route", body, n)
					}
				}
				k.settledAll(r)
				k.settledAll(o)
				p.stop()
			})
		})
	}
}

// user-problems.md: "410 should stop".
func TestGoneTargetIsPausedForEveryProcessUntilResumed(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			return bridge.Response{Status: map[string]int{`{"a":1}`: 410, `{"b":1}`: 200}[c.body]}
		})
		a, b := k.start(nil, r), k.start(nil, r)
		refused := devbroker.Fault{Status: 503, Body: `{"error":"kv_disabled","reason":"kv_disabled"}`}
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if r.URL.Path == "/api/v1/kv" && strings.Contains(readBody(r), "putIfAbsent") {
				return refused
			}
			return devbroker.Fault{}
		})
		k.wait(time.Second)
		k.push("q", "p", `{"a":1}`)
		k.wait(10 * time.Second)
		disabled := 0
		for _, p := range []*process{a, b} {
			if p.Status()[0].State == dispatch.StateDisabled {
				disabled++
			}
		}
		if disabled != 1 || !k.logs.has("pause not stored in queen") {
			t.Errorf("%d processes paused the target while Queen does not store it, want the one that saw the 410", disabled)
		}
		k.faults.set(nil)
		k.wait(10 * time.Second)
		k.states(dispatch.StateDisabled, a, b)
		if s := b.Status()[0]; !strings.Contains(s.Detail, "410 Gone") || !strings.Contains(s.Detail, "by bridge") {
			t.Errorf("status = %+v, want the reason", s)
		}
		if a.metric(t, "paused", "kind=target", "name=fn") != 1 || !k.logs.has("target paused by the bridge") {
			t.Error("metric or log lack the pause")
		}
		a.stop()
		b.stop()
		c := k.start(nil, r)
		k.push("q", "p", `{"b":1}`)
		k.wait(time.Hour)
		k.states(dispatch.StateDisabled, c)
		if n := len(k.fn.all()); n != 1 || len(k.graves("r")) != 1 {
			t.Errorf("%d calls, %d dead letters; want 1 and 1", n, len(k.graves("r")))
		}
		if err := c.ResumeTarget(k.Context(), "fn"); err != nil {
			t.Fatal(err)
		}
		k.wait(time.Minute)
		k.states(dispatch.StatePopping, c)
		if n := len(k.fn.all()); n != 2 {
			t.Errorf("%d calls after the resume, want 2", n)
		}
		c.stop()
	})
}

func TestUnreadablePausesLeaveTheLastKnownState(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		p := k.start(nil, r)
		k.wait(time.Second)
		if err := p.PauseRoute(k.Context(), "r", dispatch.PauseInfo{}); err != nil {
			t.Fatal(err)
		}
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if r.URL.Path == "/api/v1/kv" {
				return devbroker.Fault{Status: 503, Body: `{"error":"kv_disabled","reason":"kv_disabled"}`}
			}
			return devbroker.Fault{}
		})
		k.push("q", "p", `{"a":1}`)
		k.wait(time.Hour)
		k.states(dispatch.StatePaused, p)
		if len(k.fn.all()) != 0 {
			t.Error("a paused route was resumed because Queen did not answer")
		}
		if n := strings.Count(k.logs.all(), "queen does not tell what is paused"); n != 1 {
			t.Errorf("said %d times, want once", n)
		}
		if d := strings.Join(p.Degraded(), "; "); !strings.Contains(d, "kv_disabled") {
			t.Errorf("Degraded = %q", d)
		}
		ctx, cancel := context.WithTimeout(k.Context(), time.Minute)
		defer cancel()
		if err := p.ResumeRoute(ctx, "r"); err == nil {
			t.Error("a resume that Queen refused is no error")
		}
		k.states(dispatch.StatePaused, p)
		// A process that begins now does not know, and takes nothing.
		q := k.start(nil, r)
		k.wait(time.Minute)
		k.states(dispatch.StateUnreachable, q)
		if problems := q.Problems(); len(problems) != 1 || !strings.Contains(problems[0], "kv_disabled") {
			t.Errorf("Problems = %q", problems)
		}
		k.faults.set(nil)
		k.wait(10 * time.Second)
		k.states(dispatch.StatePaused, p, q)
		if len(p.Degraded()) != 0 {
			t.Errorf("Degraded = %q", p.Degraded())
		}
		p.stop()
		q.stop()
	})
}

func TestPauseOfWhatTheConfigurationPausesOrDoesNotHave(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.Paused = true
		p := k.start(nil, r)
		k.wait(time.Second)
		if err := p.ResumeRoute(k.Context(), "r"); !errors.Is(err, dispatch.ErrPausedByConfiguration) {
			t.Errorf("ResumeRoute = %v", err)
		}
		for name, err := range map[string]error{
			"pause route": p.PauseRoute(k.Context(), "x", dispatch.PauseInfo{}), "resume target": p.ResumeTarget(k.Context(), "x"),
		} {
			if !errors.Is(err, dispatch.ErrUnknown) {
				t.Errorf("%s = %v", name, err)
			}
		}
		r.Paused = false
		p.update(t, []bridge.Route{r}, "fn")
		k.push("q", "p", `{"a":1}`)
		k.wait(time.Minute)
		if len(k.fn.all()) != 1 {
			t.Errorf("%d calls once the configuration resumed it", len(k.fn.all()))
		}
		p.stop()
	})
}

func TestPausesAreListedOverPages(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		pauses := dispatch.NewPauses(k.client)
		var ops []queen.KVOp
		for i := range 1203 {
			ops = append(ops, queen.KVOp{Op: "put", Namespace: bridge.KVNamespace, Key: bridge.PauseKey("route", strings.Repeat("r", 1+i/26%60)+string(rune('a'+i%26))), Value: []byte(`{"by":"x"}`)})
		}
		want := map[string]bool{}
		for i := 0; i < len(ops); i += 200 {
			batch := ops[i:min(i+200, len(ops))]
			for _, op := range batch {
				want[op.Key] = true
			}
			if _, err := k.client.KV(k.Context(), batch); err != nil {
				t.Fatal(err)
			}
		}
		if err := pauses.PauseTarget(k.Context(), "t", dispatch.PauseInfo{Reason: strings.Repeat("é", 600), By: "y"}); err != nil {
			t.Fatal(err)
		}
		all, err := pauses.List(k.Context())
		if err != nil || len(all.Routes) != len(want) || len(all.Targets) != 1 {
			t.Fatalf("List = %d routes, %d targets, %v; want %d and 1", len(all.Routes), len(all.Targets), err, len(want))
		}
		if got := all.Targets["t"]; len(got.Reason) > 512 || !strings.HasPrefix(got.Reason, "éé") || got.By != "y" || got.Since.IsZero() {
			t.Errorf("the target's pause = %+v", got)
		}
	})
}

func pauseBy(who string) dispatch.PauseInfo { return dispatch.PauseInfo{By: who} }
