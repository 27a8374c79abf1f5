package main

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
)

// popFaults are what may happen to a pop.
var popFaults = []fault{
	slowRequest, slowAnswer, resetBefore, lostReply, brokenReply, halfReply, limited, limitedFor1s, proxyDown, missing, denied,
	unknownDone, pool, garbage, garbageDone, emptyDone, objectDone, listDone, binaryDone, databaseAway(popSource),
}

// TestFaultsOfPops: whatever happens to a pop, its messages come again when
// their lease ends (here after 1 s), are called once, and none is taken for
// poison or buried for it.
func TestFaultsOfPops(t *testing.T) {
	t.Parallel()
	kinds := []struct {
		name, more, event string
		feed              class
		calls             int
	}{
		{"events", "", `"fail":0`, popSource, 1},
		{"events in order", "    ordering: partition\n", `"fail":0`, popSource, 1},
		{"retries", quickRetry, `"fail":1`, popRetry, 2},
		{"dead letters", "", `"bad":1`, popDead, 1},
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			w, f := newFaultyWorld(t), newTarget(t, failsAsTold)
			p := w.ready(w.route("github", hexSecret, f.URL, kind.more))
			queue, dead := w.name("main"), 0
			for i, wrong := range popFaults {
				body := fmt.Sprintf(`{"n":%d,%s}`, i, kind.event)
				w.proxy.next(kind.feed, wrong)
				p.accepted(w.path(), fmt.Sprint(i), body)
				p.drained(queue, queue, patient)
				eventually(t, "the faults have met a pop", func() (bool, string) {
					return w.proxy.unspent(kind.feed) == 0, wrong.name
				})
				f.attempts(t, body, kind.calls)
				if kind.feed == popDead {
					dead++
					checkBuried(t, wrong.name, p, queue, body, dead)
				}
			}
			if n := len(p.deadLetters(queue)); n != dead {
				t.Errorf("%d dead letters, want %d: %v", n, dead, p.deadBodies(queue))
			}
			if code := p.stop(); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
		})
	}
}

// TestGarbledPopsAreNoPoison: what a proxy made of an answer is not blamed on
// a message, however often it happens. All events are delivered as they were
// sent, once, and nothing is a dead letter.
func TestGarbledPopsAreNoPoison(t *testing.T) {
	t.Parallel()
	many := func(f fault) []fault { return slices.Repeat([]fault{f}, 6) }
	kinds := []struct {
		name         string
		pops, pinned []fault
	}{
		{"payload corrupted", []fault{corrupted, corrupted}, nil},
		{"half answers", many(halfReply), []fault{halfReply, halfReply}},
		{"broken answers", many(brokenReply), []fault{brokenReply}},
		{"HTML", many(garbageDone), []fault{garbageDone, halfReply}},
		{"binary", many(binaryDone), nil},
		{"corrupted, then all of it", []fault{corrupted, halfReply, corrupted, garbageDone, brokenReply}, []fault{garbageDone, halfReply, lostReply}},
	}
	for _, kind := range kinds {
		for _, ordering := range []string{"none", "partition"} {
			t.Run(kind.name+"/"+ordering, func(t *testing.T) {
				t.Parallel()
				w, f := newFaultyWorld(t), newTarget(t, always(200))
				w.proxy.plan(popSource, kind.pops...)
				w.proxy.plan(popPinned, kind.pinned...)
				p := w.start(w.keyed(f.URL, "    ordering: "+ordering+"\n"))
				var bodies []string
				for i := range 12 {
					body := fmt.Sprintf(`{"key":"%c","n":%d,"data":[{"producerSub":null,"x":"a\u0000b"}]}`, 'a'+rune(i%3), i)
					bodies = append(bodies, body)
					p.accepted(w.path(), fmt.Sprint(i), body)
				}
				p.drained(w.name("main"), w.name("main"), 2*patient)
				for _, body := range bodies {
					f.attempts(t, body, 1)
				}
				if dead := p.deadBodies(w.name("main")); len(dead) != 0 {
					t.Errorf("dead letters: %v", dead)
				}
				if n := w.proxy.unspent(popSource); n != 0 {
					t.Errorf("%d faults met no pop: the test proves less than it says", n)
				}
			})
		}
	}
}

// TestFaultsOfCancels: a slow call that ends well cancels its retry timer. If
// the answer is lost the timer is gone all the same; if the cancel is lost the
// event comes once more, under the same id.
func TestFaultsOfCancels(t *testing.T) {
	t.Parallel()
	w := newFaultyWorld(t)
	f := newTarget(t, func(ctx context.Context, c call) int {
		if c.attempt == "1" {
			slow := time.NewTimer(time.Second)
			defer slow.Stop()
			select {
			case <-slow.C:
			case <-ctx.Done():
			}
		}
		return 200
	})
	config := w.route("github", hexSecret, f.URL, "    detach_after: 200ms\n"+quickRetry)
	config = replaceOnce(t, config, fmt.Sprintf("{url: %q}", f.URL), fmt.Sprintf("{url: %q, timeout: 6s}", f.URL))
	p := w.ready(config)
	for i, fault := range []fault{noFault, slowAnswer, lostReply, brokenReply, unknownDone, garbageDone, resetBefore, limited, pool} {
		body := fmt.Sprintf(`{"n":%d}`, i)
		w.proxy.plan(cancel, fault)
		p.accepted(w.path(), fmt.Sprint(i), body)
		w.proxy.await(t, cancel, i, nil)
		p.drained(w.name("main"), w.name("main"), patient)
		calls := 1
		if fault.unsent && fault.name != limited.name { // the client waits a 429 out
			calls = 2
		}
		f.attempts(t, body, calls)
	}
}
