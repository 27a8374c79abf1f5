package dispatch_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/dispatch"
)

func TestStopLetsCallsFinishAndGivesTheRestBack(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.DetachAfter = 0
		k.fn.answers(func(ctx context.Context, _ call) bridge.Response {
			return after(ctx, 10*time.Second, bridge.Response{Status: 200})
		})
		narrow := func(c *dispatch.Config) { c.Targets[0].Concurrency = 2 }
		p := k.start(narrow, r)
		k.push("q", "p", `{"n":1}`, `{"n":2}`, `{"n":3}`)
		k.push("q", "other", `{"n":4}`, `{"n":5}`)
		k.wait(3 * time.Second)
		begun := time.Now()
		p.stop()
		if took := time.Since(begun); took > 8*time.Second {
			t.Errorf("the stop took %v, the calls had 7s to go", took)
		}
		if n := len(k.fn.all()); n != 2 {
			t.Errorf("%d calls by the first process, want 2", n)
		}
		p = k.start(narrow, r)
		k.wait(40 * time.Second)
		seen := map[string]int{}
		for _, c := range k.fn.all() {
			seen[c.body]++
			if c.Attempt != 1 {
				t.Errorf("%s: attempt %d, but it never failed", c.body, c.Attempt)
			}
		}
		for n := 1; n <= 5; n++ {
			if seen[fmt.Sprintf(`{"n":%d}`, n)] != 1 {
				t.Errorf("calls = %v, want each event once", seen)
				break
			}
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestStopCancelsWhatOutlastsIt(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.DetachAfter = 0
		k.fn.answers(func(ctx context.Context, _ call) bridge.Response {
			return after(ctx, time.Hour, bridge.Response{Status: 200})
		})
		p := k.start(func(c *dispatch.Config) { c.Targets[0].HTTP.Timeout = time.Hour; c.StopTimeout = 12 * time.Second }, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(time.Second)
		begun := time.Now()
		p.stop()
		if took := time.Since(begun); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("the stop took %v, want the grace of 10s", took)
		}
		if n, m := k.depth("q", "r"), k.timers("r"); n != 0 || m != 1 {
			t.Errorf("%d messages and %d timers left, want the event's retry", n, m)
		}
	})
}

// slowAnswers is a network on which the answers to pops are under way for a
// while; who hangs up meanwhile never gets them.
type slowAnswers struct {
	http.RoundTripper
	delay time.Duration
}

func (s slowAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.RoundTripper.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.HasPrefix(r.URL.Path, "/api/v1/pop") {
		return resp, err
	}
	select {
	case <-time.After(s.delay):
		return resp, nil
	case <-r.Context().Done():
		_ = resp.Body.Close()
		return nil, r.Context().Err()
	}
}

// TestStopGivesBackWhatAPopIsJustAnswered: an event that Queen leases while the
// dispatcher stops is the next one's at once, not when that lease runs out.
func TestStopGivesBackWhatAPopIsJustAnswered(t *testing.T) {
	t.Parallel()
	eachOrdering(t, func(t *testing.T, ordering bridge.Ordering) {
		inBubble(t, nil, func(k *kit) {
			r := routeOf(ordering)
			client, err := queen.New(queen.Config{URLs: []string{"http://queen"}, Transport: slowAnswers{k.broker.Transport(), 100 * time.Millisecond}})
			if err != nil {
				t.Fatal(err)
			}
			p := k.start(func(c *dispatch.Config) { c.Queen = client }, r)
			k.wait(time.Second)
			k.push("q", "p", `{"n":1}`)
			k.wait(50 * time.Millisecond)
			p.stop()
			if n := len(k.fn.all()); n != 0 {
				t.Fatalf("%d calls: the answer came before the stop, the test proves nothing", n)
			}
			p = k.start(nil, r)
			k.wait(time.Second)
			if calls := k.fn.all(); len(calls) != 1 || calls[0].Attempt != 1 {
				t.Errorf("calls a second after the next start: %+v, want the event's first", calls)
			}
			k.settledAll(r)
			p.stop()
		})
	})
}

// Events that wait for a slot are given back at once when their target is
// paused or their route stops, although every slot has a slow call.
func TestWaitingEventsAreGivenBackWhileSlotsAreBusy(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*kit, *process){
		"pause": func(k *kit, p *process) {
			if err := p.PauseTarget(k.Context(), "fn", dispatch.PauseInfo{}); err != nil {
				k.Fatal(err)
			}
		},
		"stop": func(_ *kit, p *process) { go p.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r := testRoute("r", "q")
				r.DetachAfter = 0
				k.fn.answers(func(ctx context.Context, c call) bridge.Response {
					if strings.Contains(c.body, "slow") {
						return after(ctx, 20*time.Second, bridge.Response{Status: 200})
					}
					return after(ctx, time.Millisecond, bridge.Response{Status: 200})
				})
				p := k.start(func(c *dispatch.Config) { c.Targets[0].Concurrency = 2 }, r)
				k.pushMany("q", 40) // quick ones: more are popped ahead from now on
				k.wait(time.Second)
				k.push("q", "a", `{"slow":1}`)
				k.push("q", "b", `{"slow":2}`)
				k.wait(10 * time.Millisecond)
				for i := range 20 {
					k.push("q", fmt.Sprint("p", i), fmt.Sprintf(`{"later":%d}`, i))
				}
				k.wait(time.Second)
				if n := p.metric(t, "target_waiting", "target=fn"); n < 10 {
					t.Fatalf("%v events wait, want those popped ahead", n)
				}
				end(k, p)
				k.wait(time.Second)
				if n, calls := p.metric(t, "target_waiting", "target=fn"), len(k.fn.all()); n != 0 || calls != 42 {
					t.Errorf("%v events wait, %d calls were made; want 0 and 42, the last 2 of them slow", n, calls)
				}
				k.wait(30 * time.Second)
				p.stop()
				if n := len(k.fn.all()); n != 42 {
					t.Errorf("%d calls, want none of the events that waited", n)
				}
				if n := k.depth("q", "r") + k.timers("r"); n != 20 {
					t.Errorf("%d events wait in queen, want those that were given back", n)
				}
			})
		})
	}
}
