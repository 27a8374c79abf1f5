package dispatch_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// Settles of several routes go in one transaction. One whose lease is lost
// takes nothing from the others.
func TestLostLeaseInABundleTakesNothingFromTheOthers(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		var routes []bridge.Route
		for _, name := range []string{"a", "b", "first"} {
			r := testRoute(name, "q"+name)
			r.DetachAfter = 0
			routes = append(routes, r)
		}
		k.fn.answers(func(ctx context.Context, c call) bridge.Response {
			switch {
			case c.n > 1:
				return bridge.Response{Status: 200}
			case c.body == `{"first":1}`:
				return bridge.Response{Status: 500}
			}
			return after(ctx, time.Second, bridge.Response{Status: 500})
		})
		bundled := false
		k.faults.set(func(r *http.Request) devbroker.Fault {
			switch r.URL.Path {
			case "/api/v1/pop/queue/qa":
				if len(k.fn.of(`{"a":1}`)) == 0 {
					return devbroker.Fault{Lease: 500 * time.Millisecond}
				}
			case "/api/v1/transaction":
				body := readBody(r)
				bundled = bundled || strings.Contains(body, `{\"a\":1}`) && strings.Contains(body, `{\"b\":1}`)
				if strings.Contains(body, `{\"first\":1}`) {
					return devbroker.Fault{Delay: 3 * time.Second} // the others wait and share the next one
				}
			}
			return devbroker.Fault{}
		})
		k.push("qfirst", "p", `{"first":1}`)
		k.push("qa", "p", `{"a":1}`)
		k.push("qb", "p", `{"b":1}`)
		begun := time.Now()
		p := k.start(nil, routes...)
		k.wait(2 * time.Minute)
		b := k.fn.of(`{"b":1}`)
		if len(b) != 2 || b[1].Attempt != 2 || b[1].at.Sub(begun) > 15*time.Second {
			t.Errorf("calls of the event in good standing: %+v", b)
		}
		if !bundled {
			t.Error("the settles of a and b shared no transaction")
		}
		for _, r := range routes {
			k.settledAll(r)
		}
		p.stop()
	})
}
