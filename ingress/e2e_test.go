package ingress_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/ingress"
)

// popAll takes every event out of a queue.
func popAll(t *testing.T, c *queen.Client, name string) []bridge.Event {
	t.Helper()
	var out []bridge.Event
	for {
		got, err := c.Pop(t.Context(), queen.PopRequest{Queue: name, Group: "test", Batch: 256, Partitions: 16,
			Lease: time.Minute, SubscriptionMode: "all"})
		if err != nil {
			t.Fatalf("pop: %v", err)
		}
		if len(got.Messages) == 0 {
			return out
		}
		var acks []queen.Ack
		for _, m := range got.Messages {
			e, ours, err := bridge.DecodeEvent(m.Data)
			if err != nil || !ours {
				t.Fatalf("DecodeEvent(%s) = %v, %v", m.Data, ours, err)
			}
			out = append(out, e)
			acks = append(acks, queen.Ack{TransactionID: m.TransactionID, PartitionID: m.PartitionID, Lease: got.Lease, Status: queen.AckCompleted})
		}
		if _, err := c.AckBatch(t.Context(), acks); err != nil {
			t.Fatalf("ack: %v", err)
		}
	}
}

// serveOn runs a server over a real client and a real broker.
func serveOn(t *testing.T, client *queen.Client, c ingress.Config) *world {
	t.Helper()
	c.Queen = client
	return serve(t, c)
}

func TestEveryDeliveryIsStoredOnceOnTheEmbeddedBroker(t *testing.T) {
	t.Parallel()
	client := embedded(t, devbroker.Config{Dir: t.TempDir()})
	w := serveOn(t, client, sources(github("gh", "s")))
	bodyOf := func(i int) string { return fmt.Sprintf(`{"n":%d,"text":"caf\u00e9 é %s"}`, i, strings.Repeat("x", i)) }
	var wg sync.WaitGroup
	const events, times = 200, 3
	for n := range events * times {
		wg.Go(func() {
			i := n % events
			if rec := call(w.Handler(), "/in/gh", bodyOf(i), signed("s", fmt.Sprint(i), bodyOf(i))...); rec.Code != http.StatusOK {
				t.Errorf("delivery %d: status %d, want 200", i, rec.Code)
			}
		})
	}
	wg.Wait()
	got := map[string]string{}
	stored := popAll(t, client, "gh")
	for _, e := range stored {
		got[e.ID] = string(e.Body)
	}
	want := map[string]string{}
	for i := range events {
		want[fmt.Sprint("github:", i)] = bodyOf(i)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(stored) != events {
		t.Errorf("%d events stored, want %d; (-want +got):\n%s", len(stored), events, diff)
	}
}

func TestOddBytesLandOnTheEmbeddedBroker(t *testing.T) {
	t.Parallel()
	client := embedded(t, devbroker.Config{})
	w := serveOn(t, client, sources(open("a")))
	bodies := []string{`"\u0000"`, `"\ud800"`, "\x00", "\xff", "", "é"}
	id := strings.Repeat("i", 299)
	for i, body := range bodies {
		res, _ := w.post(t, "/in/a", body, "X-Id", fmt.Sprint(id, i), "X-Latin", "caf\xe9")
		if res.StatusCode != 200 {
			t.Errorf("body %q: status %d, want 200", body, res.StatusCode)
		}
	}
	got := map[string]bool{}
	for _, e := range popAll(t, client, "a") {
		got[string(e.Body)] = true
		if !strings.HasPrefix(e.ID, "none:sha256:") {
			t.Errorf("id %q, want a hash of the long one", e.ID)
		}
	}
	for _, body := range bodies {
		if !got[body] {
			t.Errorf("body %q is not stored", body)
		}
	}
}

// TestAnOutageLosesNothingAndRepeatsNothing: the broker loses requests and
// answers; whoever was not answered 2xx sends again.
func TestAnOutageLosesNothingAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	n := 0
	client := embedded(t, devbroker.Config{Intercept: func(r *http.Request) devbroker.Fault {
		if r.URL.Path != "/api/v1/push" {
			return devbroker.Fault{}
		}
		mu.Lock()
		defer mu.Unlock()
		n++
		return outage(n)
	}})
	c := sources(keyed("a"))
	c.Settings.EnqueueTimeout = 400 * time.Millisecond
	w := serveOn(t, client, c)
	var wg sync.WaitGroup
	const events = 300
	for i := range events {
		wg.Go(func() {
			for range 100 {
				if rec := call(w.Handler(), "/in/a", "{}", "X-Id", fmt.Sprint(i), "X-Key", fmt.Sprint("p", i%20)); rec.Code == 200 {
					return
				}
			}
			t.Errorf("event %d was never accepted", i)
		})
	}
	wg.Wait()
	seen := map[string]int{}
	for _, e := range popAll(t, client, "a") {
		seen[e.ID]++
	}
	if len(seen) != events {
		t.Errorf("%d different events stored, want %d", len(seen), events)
	}
	for id, n := range seen {
		if n > 1 {
			t.Errorf("%s is stored %d times", id, n)
		}
	}
}

// outage is what goes wrong with the n-th push.
func outage(n int) devbroker.Fault {
	switch {
	case n > 400: // it ends
		return devbroker.Fault{}
	case n%5 == 1:
		return devbroker.Fault{Status: http.StatusServiceUnavailable, Body: `{"error":"standby"}`}
	case n%5 == 2:
		return devbroker.Fault{LoseAnswer: true}
	case n%5 == 3:
		return devbroker.Fault{Buffered: true}
	case n%7 == 0:
		return devbroker.Fault{CutAnswer: 10}
	}
	return devbroker.Fault{}
}
