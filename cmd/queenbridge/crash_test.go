package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestKilledBridgeLosesNothing kills the bridge between a call and its commit.
func TestKilledBridgeLosesNothing(t *testing.T) {
	t.Parallel()
	for ordering, more := range map[string]string{"none": "    detach_after: 0s\n", "partition": ""} {
		t.Run(ordering, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var killed atomic.Bool
			f := newTarget(t, func(ctx context.Context, _ call) int {
				if !killed.Load() {
					<-ctx.Done() // the caller dies first
				}
				return 200
			})
			config := w.route("github", hexSecret, f.URL, "    ordering: "+ordering+"\n"+more)
			p := w.start(config)
			p.storedAs(w.path(), "k", `{"n":1}`)
			first := f.next()
			p.kill()
			killed.Store(true)
			p = w.start(config)
			second := f.nextWithin(leaseOver)
			if first.id != second.id || string(second.body) != `{"n":1}` {
				t.Errorf("first call %s, second %s %q: want the same id and body", first.id, second.id, second.body)
			}
			p.stop()
			if n := len(f.seen()); n != 2 {
				t.Errorf("%d calls, want 2", n)
			}
		})
	}
}

// TestEventsSurviveKillsUnderLoad accepts events while the bridge is killed
// again and again, and counts what arrives: every event that was answered 2xx.
func TestEventsSurviveKillsUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	arrived, ids := map[string]int{}, map[string]string{}
	f := newTarget(t, func(_ context.Context, c call) int {
		mu.Lock()
		defer mu.Unlock()
		body := string(c.body)
		if id, ok := ids[body]; ok && id != c.id {
			t.Errorf("event %s came under two ids, %s and %s", body, id, c.id)
		}
		ids[body] = c.id
		if rand.IntN(4) == 0 {
			return 503
		}
		arrived[body]++
		return 200
	})
	config := w.route("github", hexSecret, f.URL, "    retry: {backoff: [100ms]}\n")
	accepted := map[string]bool{}
	n := 0
	for range 4 {
		p := w.start(config)
		end := time.Now().Add(time.Second)
		for time.Now().Before(end) {
			n++
			body := fmt.Sprintf(`{"n":%d}`, n)
			if status, _, _ := p.github(w.path(), fmt.Sprint(n), body); status == 200 {
				accepted[body] = true
			}
		}
		p.kill()
	}
	p := w.start(config)
	within(t, leaseOver+patient, "every accepted event has arrived", func() (bool, string) {
		mu.Lock()
		defer mu.Unlock()
		missing := 0
		for body := range accepted {
			if arrived[body] == 0 {
				missing++
			}
		}
		return missing == 0, fmt.Sprintf("%d of %d missing", missing, len(accepted))
	})
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	t.Logf("%d events accepted over 4 kills, %d calls", len(accepted), len(f.seen()))
}
