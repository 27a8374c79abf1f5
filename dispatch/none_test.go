package dispatch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
)

func TestDeliversWhatIsPushed(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		p := k.start(nil, r)
		for i := range 20 {
			k.push("q", fmt.Sprintf("p%d", i%4), fmt.Sprintf(`{"n":%d}`, i))
		}
		k.wait(time.Second)
		if n := len(k.fn.all()); n != 20 {
			t.Errorf("%d calls, want 20", n)
		}
		k.settledAll(r)
		c := k.fn.of(`{"n":3}`)[0]
		want := bridge.DeliveryID("r", bridge.Origin{Queue: "q", Partition: "p3", TransactionID: `t:{"n":3}`})
		if c.DeliveryID != want || c.Attempt != 1 || c.Queue != "q" || c.Partition != "p3" || c.ContentType != "application/json" {
			t.Errorf("call = %+v", c)
		}
		if n := p.metric(t, "attempts_total", "outcome=delivered", "code=200"); n != 20 {
			t.Errorf("attempts_total = %v, want 20", n)
		}
		p.stop()
	})
}

func TestFailingEventComesBackByATimer(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.statuses(503, 503)
		p := k.start(nil, r)
		k.push("q", "p", `{"a": 1}`)
		k.wait(time.Minute)
		calls := k.fn.all()
		if len(calls) != 3 {
			t.Fatalf("%d calls, want 3", len(calls))
		}
		due := calls[0].at
		for i, c := range calls {
			if c.Attempt != i+1 || c.DeliveryID != calls[0].DeliveryID || c.body != `{"a": 1}` {
				t.Errorf("call %d = %+v", i+1, c)
			}
			if late := c.at.Sub(due); late < 0 || late > 500*time.Millisecond {
				t.Errorf("call %d came %v after it was due", i+1, late)
			}
			due = c.at.Add(r.Retry.Backoff[min(i, 2)])
		}
		k.settledAll(r)
		if n := p.metric(t, "retries_scheduled_total"); n != 2 {
			t.Errorf("retries_scheduled_total = %v, want 2", n)
		}
		p.stop()
	})
}

func TestRefusedEventIsADeadLetterAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.statuses(400)
		p := k.start(nil, r)
		k.push("q", "p", `{"a": 1}`)
		k.wait(time.Second)
		graves := k.graves("r")
		if len(graves) != 1 {
			t.Fatalf("%d dead letters, want 1", len(graves))
		}
		g := graves[0]
		if g.reason.Class != bridge.FailureHTTP4xx || g.reason.Status != 400 || g.reason.Attempts != 1 || g.reason.Route != "r" || g.reason.First.IsZero() {
			t.Errorf("reason = %+v", g.reason)
		}
		if string(g.Payload) != `{"a": 1}` || g.Origin.Queue != "q" || g.Hop != 1 || g.Attempt != 1 {
			t.Errorf("dead letter = %+v", g.Delivery)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestEachGroupGetsEveryEventAndOnlyItsOwnRetries(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		a, b := testRoute("a", "q"), testRoute("b", "q")
		b.Target = "other"
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			if c.target == "fn" && c.n == 1 {
				return bridge.Response{Status: 500}
			}
			return bridge.Response{Status: 200}
		})
		p := k.start(nil, a, b)
		for i := range 10 {
			k.push("q", "p", fmt.Sprintf(`{"n":%d}`, i))
		}
		k.wait(20 * time.Second)
		perTarget := map[string]int{}
		for _, c := range k.fn.all() {
			perTarget[c.target]++
		}
		if perTarget["fn"] != 20 || perTarget["other"] != 10 {
			t.Errorf("calls = %v, want fn 20 (each event failed once) and other 10", perTarget)
		}
		k.settledAll(a)
		k.settledAll(b)
		p.stop()
	})
}

func TestFailingEventBlocksNobody(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			if c.body == `{"bad":1}` {
				return bridge.Response{Status: 500}
			}
			return bridge.Response{Status: 200}
		})
		p := k.start(nil, r)
		k.push("q", "p", `{"bad":1}`)
		pushed := time.Now()
		for i := range 50 {
			k.push("q", "p", fmt.Sprintf(`{"n":%d}`, i))
			k.wait(time.Second)
		}
		for _, c := range k.fn.all() {
			var n int
			if _, err := fmt.Sscanf(c.body, `{"n":%d}`, &n); err == nil && c.at.Sub(pushed) > time.Duration(n)*time.Second+100*time.Millisecond {
				t.Errorf("event %d of the same partition was called %v after it was pushed", n, c.at.Sub(pushed)-time.Duration(n)*time.Second)
			}
		}
		p.stop()
	})
}

func TestAttemptsRunOut(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.Retry.MaxAttempts = 3
		k.fn.statuses(500, 500, 503, 500)
		p := k.start(nil, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(10 * time.Minute)
		if n := len(k.fn.all()); n != 3 {
			t.Errorf("%d calls, want 3", n)
		}
		graves := k.graves("r")
		if len(graves) != 1 || graves[0].reason.Class != bridge.FailureExhausted || graves[0].reason.Attempts != 3 || graves[0].reason.Status != 503 {
			t.Errorf("dead letters = %+v", graves)
		}
		if g := graves[0]; g.reason.Last.Sub(g.reason.First).Round(time.Second) != 35*time.Second {
			t.Errorf("first %v, last %v; want 35s between them", g.reason.First, g.reason.Last)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestPanickingSenderIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			if c.n == 1 {
				panic("boom")
			}
			return bridge.Response{Status: 200}
		})
		p := k.start(nil, r)
		k.push("q", "p", `{"a":1}`)
		k.wait(10 * time.Second)
		if calls := k.fn.all(); len(calls) != 2 || calls[1].Attempt != 2 {
			t.Errorf("calls = %+v", calls)
		}
		k.settledAll(r)
		p.stop()
	})
}

func TestSubscribeNewSkipsWhatWasThere(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := testRoute("r", "q")
		r.Subscribe = "new"
		k.push("q", "p", `{"old":1}`)
		k.wait(time.Second)
		p := k.start(nil, r)
		k.wait(time.Second)
		k.push("q", "p", `{"new":1}`)
		k.wait(time.Second)
		if n := len(k.fn.all()); n != 1 || len(k.fn.of(`{"new":1}`)) != 1 {
			t.Errorf("calls = %+v", k.fn.all())
		}
		p.stop()
	})
}

// A route may begin with the events since a time: that is how events are
// replayed, in a group of its own and to nobody else.
func TestSubscribeByTimeReplaysWhatCameSince(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		k.push("q", "p", `{"old":1}`)
		k.push("q", "other", `{"old":2}`)
		first := testRoute("first", "q")
		p := k.start(nil, first)
		k.wait(time.Hour)
		since := time.Now().UTC()
		k.wait(time.Minute)
		k.push("q", "p", `{"n":1}`)
		k.push("q", "third", `{"n":2}`)
		k.wait(time.Hour)
		p.stop()
		again := testRoute("again", "q")
		again.Target, again.Subscribe = "replay", since.Format(time.RFC3339)
		p = k.start(nil, first, again)
		k.wait(time.Minute)
		seen := map[string]int{}
		for _, c := range k.fn.all() {
			seen[c.target+c.body]++
		}
		want := map[string]int{`fn{"old":1}`: 1, `fn{"old":2}`: 1, `fn{"n":1}`: 1, `fn{"n":2}`: 1, `replay{"n":1}`: 1, `replay{"n":2}`: 1}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		k.settledAll(first)
		k.settledAll(again)
		p.stop()
	})
}

// How long the route's oldest event has waited is told while it falls behind.
func TestAgeOfTheOldestEventIsTold(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		k.push("q", "p", `{"n":1}`)
		k.wait(90 * time.Second)
		r := testRoute("r", "q")
		p := k.start(nil, r)
		k.wait(time.Second)
		if age := p.metric(t, "oldest_event_seconds", "route=r"); age < 90 || age > 92 {
			t.Errorf("oldest_event_seconds = %v, want 90", age)
		}
		k.wait(time.Minute) // the poll comes back empty
		if age := p.metric(t, "oldest_event_seconds", "route=r"); age != 0 {
			t.Errorf("oldest_event_seconds = %v of an empty queue", age)
		}
		p.stop()
	})
}
