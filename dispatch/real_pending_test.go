package dispatch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/dispatch"
)

func TestRealPendingRetriesAreCounted(t *testing.T) {
	t.Parallel()
	k := newRealKit(t)
	r := k.route(bridge.OrderingNone)
	const n = 1234 // more than one page
	for from := 0; from < n; from += 100 {
		var timers []queen.Timer
		for i := from; i < min(n, from+100); i++ {
			key := fmt.Sprint("k/", i)
			timers = append(timers, queen.Timer{Queue: bridge.RetryQueue(r.Name), Key: key, Partition: "0", TransactionID: key, Delay: time.Hour, Payload: []byte("{}")})
		}
		if _, err := k.client.Schedule(t.Context(), timers); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	got, err := k.client.CountTimers(t.Context(), bridge.RetryQueue(r.Name), dispatch.MaxRetriesPending)
	if err != nil || got != n {
		t.Errorf("CountTimers = %d, %v, want %d", got, err, n)
	}
	t.Logf("%d timers counted in %v", got, time.Since(began))
}
