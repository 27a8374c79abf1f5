package dispatch_test

import (
	"fmt"
	"testing"
	"time"

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
