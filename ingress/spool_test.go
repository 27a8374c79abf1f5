package ingress_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
	"github.com/queenbridge/queenbridge/ingress"
)

// awayQueen is a Queen that may be away.
type awayQueen struct {
	queentest.Shelf
	away atomic.Bool
}

func newAwayQueen(away bool) *awayQueen {
	o := &awayQueen{}
	o.away.Store(away)
	o.Before = func(context.Context, []queen.Item) error {
		if o.away.Load() {
			return errAway
		}
		return nil
	}
	return o
}

// spooling are sources of one queue each whose events may be spooled.
func spooling(t *testing.T, q ingress.Pusher, list ...bridge.Source) ingress.Config {
	t.Helper()
	for i := range list {
		list[i].Spool = true
	}
	c := sources(list...)
	c.Queen = q
	c.Settings.Spool.Dir = t.TempDir()
	return c
}

// until waits for something that another goroutine brings about.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long until %s", what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

func newSpooling(t *testing.T, c ingress.Config) *world {
	t.Helper()
	w := serve(t, c)
	if o, ok := c.Queen.(*awayQueen); ok {
		w.queen = &o.Shelf
	}
	return w
}

func status(t *testing.T, dir string) ingress.SpoolStatus {
	t.Helper()
	s, err := ingress.ReadSpool(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWhileQueenIsAwayEventsAreSpooledAndReplayedInOrder is the whole life of
// the spool.
func TestWhileQueenIsAwayEventsAreSpooledAndReplayedInOrder(t *testing.T) {
	t.Parallel()
	q := newAwayQueen(true)
	src := keyed("a")
	src.Respond = bridge.Respond{Status: 202, Body: "[accepted]"}
	c := spooling(t, q, src)
	reg := prometheus.NewRegistry()
	c.Metrics = reg
	w := newSpooling(t, c)
	for i := range 20 {
		res, body := w.post(t, "/in/a", "{}", "X-Id", fmt.Sprintf("%02d", i), "X-Key", fmt.Sprint("p", i%3))
		if res.StatusCode != 202 || body != "[accepted]" {
			t.Fatalf("event %d: %d %q, want the source's own answer", i, res.StatusCode, body)
		}
	}
	s := status(t, c.Settings.Spool.Dir)
	if len(s.Queues) != 1 || s.Queues[0].Events != 20 || s.Queues[0].Queue != "a" || s.Bytes == 0 || time.Since(s.Queues[0].Oldest) > time.Minute {
		t.Errorf("ReadSpool = %+v, want 20 events of a", s)
	}
	for name, want := range map[string]float64{"spool_events": 20, "spooled_total": 20, "spool_bytes": float64(s.Bytes)} {
		if got := metric(t, reg, "queenbridge_ingress_"+name); got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if metric(t, reg, "queenbridge_ingress_spool_oldest_age_seconds") <= 0 {
		t.Error("the oldest event has no age")
	}
	if got := metric(t, reg, "queenbridge_ingress_events_total", "verdict", "spooled"); got != 20 {
		t.Errorf("%v events spooled by verdict, want 20", got)
	}
	q.away.Store(false)
	until(t, "all is replayed", func() bool { return metric(t, reg, "queenbridge_ingress_spool_events") == 0 })
	checkOrder(t, q.Items(), 20)
	if got := metric(t, reg, "queenbridge_ingress_spool_replayed_total", "queue", "a"); got != 20 {
		t.Errorf("%v events replayed, want 20", got)
	}
	if res, _ := w.post(t, "/in/a", "{}", "X-Id", "20", "X-Key", "p0"); res.StatusCode != 202 {
		t.Errorf("afterwards: status %d", res.StatusCode)
	}
	if n := len(q.Items()); n != 21 || metric(t, reg, "queenbridge_ingress_spooled_total") != 20 {
		t.Errorf("%d stored, %v spooled; want the last one straight to Queen", n, metric(t, reg, "queenbridge_ingress_spooled_total"))
	}
}

// checkOrder checks that n different events are stored, each partition's in
// order.
func checkOrder(t *testing.T, items []queen.Item, n int) {
	t.Helper()
	last, seen := map[string]string{}, map[string]bool{}
	for _, it := range items {
		if it.TransactionID <= last[it.Partition] {
			t.Errorf("partition %s: %s stored after %s", it.Partition, it.TransactionID, last[it.Partition])
		}
		last[it.Partition], seen[it.TransactionID] = it.TransactionID, true
		if e, ours, err := bridge.DecodeEvent(it.Payload); err != nil || !ours || e.ID != it.TransactionID {
			t.Errorf("payload of %s: %+v, %v", it.TransactionID, e, err)
		}
	}
	if len(seen) != n || len(items) != n {
		t.Errorf("%d items with %d ids stored, want %d", len(items), len(seen), n)
	}
}

// TestNewEventsJoinTheSpoolUntilItIsEmpty: what comes after Queen is back must
// not overtake what waits.
func TestNewEventsJoinTheSpoolUntilItIsEmpty(t *testing.T) {
	t.Parallel()
	q, leave := newAwayQueen(true), make(chan struct{})
	entered := make(chan struct{}, 100)
	q.Before = func(ctx context.Context, items []queen.Item) error {
		if q.away.Load() {
			return errAway
		}
		return blockUntil(entered, leave)(ctx, items)
	}
	c := spooling(t, q, keyed("a"))
	w := newSpooling(t, c)
	post := func(i int) {
		t.Helper()
		if res, _ := w.post(t, "/in/a", "{}", "X-Id", fmt.Sprintf("%02d", i), "X-Key", "one"); res.StatusCode != 200 {
			t.Fatalf("event %d: status %d", i, res.StatusCode)
		}
	}
	post(0)
	post(1)
	q.away.Store(false)
	<-entered // the replay is under way, and held
	post(2)
	post(3)
	if n := len(q.Items()); n != 0 {
		t.Errorf("%d events overtook the spool", n)
	}
	close(leave)
	until(t, "all is replayed", func() bool { return len(q.Items()) == 4 })
	checkOrder(t, q.Items(), 4)
}

func TestASourceThatDoesNotSpoolIs503OnTheSameQueue(t *testing.T) {
	t.Parallel()
	q := newAwayQueen(true)
	plain := open("plain")
	c := spooling(t, q, open("a"))
	plain.Queue = "a"
	c.Sources = append(c.Sources, plain)
	c.Settings.EnqueueTimeout = 2 * time.Second
	w := newSpooling(t, c)
	for path, want := range map[string]int{"/in/a": 200, "/in/plain": 503} {
		if res, _ := w.post(t, path, "{}", "X-Id", path); res.StatusCode != want {
			t.Errorf("POST %s = %d, want %d", path, res.StatusCode, want)
		}
	}
	q.away.Store(false)
	until(t, "the spool is replayed", func() bool { return len(q.Items()) == 1 })
}

func TestAFullSpoolIs503AndLosesNothing(t *testing.T) {
	t.Parallel()
	q := newAwayQueen(true)
	c := spooling(t, q, open("a"))
	c.Settings.Spool.MaxBytes = 4 << 10
	c.Settings.EnqueueTimeout = time.Second
	reg := prometheus.NewRegistry()
	c.Metrics = reg
	w := newSpooling(t, c)
	body := `{"pad":"` + strings.Repeat("x", 900) + `"}`
	accepted := map[string]bool{}
	for i := range 8 {
		id := fmt.Sprint(i)
		res, _ := w.post(t, "/in/a", body, "X-Id", id)
		switch {
		case res.StatusCode == 200:
			accepted["none:"+id] = true
		case res.StatusCode != 503 || res.Header.Get("Retry-After") == "":
			t.Errorf("event %d: status %d, Retry-After %q", i, res.StatusCode, res.Header.Get("Retry-After"))
		}
	}
	if len(accepted) == 0 || len(accepted) == 8 {
		t.Fatalf("%d of 8 events accepted into 4 KiB", len(accepted))
	}
	if metric(t, reg, "queenbridge_ingress_rejections_total", "reason", "spool_full") == 0 {
		t.Error("no rejection says spool_full")
	}
	if s := status(t, c.Settings.Spool.Dir); s.Bytes > 4<<10 {
		t.Errorf("%d bytes spooled, want at most 4 KiB", s.Bytes)
	}
	q.away.Store(false)
	until(t, "all is replayed", func() bool { return metric(t, reg, "queenbridge_ingress_spool_events") == 0 })
	for _, id := range ids(q.Items()) {
		if !accepted[id] {
			t.Errorf("%s was answered 503 and replayed all the same", id)
		}
	}
	if res, _ := w.post(t, "/in/a", body, "X-Id", "later"); res.StatusCode != 200 {
		t.Errorf("once there is room: status %d, want 200", res.StatusCode)
	}
}

// TestWhatQueenHasAlreadyIsADuplicate: the reply got lost, so the spool and
// Queen both have it.
func TestWhatQueenHasAlreadyIsADuplicate(t *testing.T) {
	t.Parallel()
	q := newAwayQueen(false)
	lost := make(chan struct{}, 1)
	q.After = func([]queen.Item) error {
		select {
		case lost <- struct{}{}:
			return errAway
		default:
			return nil
		}
	}
	c := spooling(t, q, open("a"))
	reg := prometheus.NewRegistry()
	c.Metrics = reg
	w := newSpooling(t, c)
	if res, _ := w.post(t, "/in/a", "{}", "X-Id", "1"); res.StatusCode != 200 {
		t.Errorf("status %d, want 200", res.StatusCode)
	}
	until(t, "it is replayed", func() bool { return metric(t, reg, "queenbridge_ingress_spool_replayed_total") == 1 })
	if n := len(q.Items()); n != 1 {
		t.Errorf("%d items stored, want 1", n)
	}
}

// TestQueensOwnSpoolIsNotTrusted: buffered may be lost, so it goes to ours.
func TestQueensOwnSpoolIsNotTrusted(t *testing.T) {
	t.Parallel()
	q := newAwayQueen(false)
	var databaseAway atomic.Bool
	databaseAway.Store(true)
	q.Verdict = func(queen.Item) queen.PushStatus {
		if databaseAway.Load() {
			return queen.PushBuffered
		}
		return ""
	}
	c := spooling(t, q, open("a"))
	w := newSpooling(t, c)
	if res, _ := w.post(t, "/in/a", "{}", "X-Id", "1"); res.StatusCode != 200 {
		t.Errorf("status %d, want 200", res.StatusCode)
	}
	if s := status(t, c.Settings.Spool.Dir); len(s.Queues) != 1 || s.Queues[0].Events != 1 {
		t.Errorf("ReadSpool = %+v, want the event", s)
	}
	databaseAway.Store(false)
	until(t, "it is replayed", func() bool { return len(q.Items()) == 1 })
}

// TestAnEventThatQueenNeverTakesIsKeptApart: it was answered 2xx, and those
// behind it must go on.
func TestAnEventThatQueenNeverTakesIsKeptApart(t *testing.T) {
	t.Parallel()
	q := newAwayQueen(true)
	q.Before = func(_ context.Context, items []queen.Item) error {
		switch {
		case q.away.Load():
			return errAway
		case slices.Contains(ids(items), "none:poison"):
			return &queen.StatusError{Status: http.StatusBadRequest, Text: "no"}
		}
		return nil
	}
	c := spooling(t, q, keyed("a"))
	reg := prometheus.NewRegistry()
	c.Metrics = reg
	w := newSpooling(t, c)
	for _, id := range []string{"1", "2", "poison", "3", "4"} {
		if res, _ := w.post(t, "/in/a", "{}", "X-Id", id, "X-Key", "one"); res.StatusCode != 200 {
			t.Errorf("event %s: status %d", id, res.StatusCode)
		}
	}
	q.away.Store(false)
	until(t, "the rest is replayed", func() bool { return len(q.Items()) == 4 })
	if diff := cmp.Diff([]string{"none:1", "none:2", "none:3", "none:4"}, ids(q.Items())); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	until(t, "the replay ends", func() bool { return metric(t, reg, "queenbridge_ingress_spool_events") == 0 })
	s := status(t, c.Settings.Spool.Dir)
	if len(s.Queues) != 1 || s.Queues[0].Refused != 1 || s.Queues[0].Events != 0 || !s.Queues[0].Oldest.IsZero() {
		t.Errorf("ReadSpool = %+v, want the refused one", s)
	}
	if metric(t, reg, "queenbridge_ingress_spool_refused_events") != 1 || !strings.Contains(w.logs.String(), "none:poison") {
		t.Error("neither metric nor log knows of it")
	}
	if res, _ := w.post(t, "/in/a", "{}", "X-Id", "5", "X-Key", "one"); res.StatusCode != 200 || len(q.Items()) != 5 {
		t.Errorf("afterwards: status %d, %d stored", res.StatusCode, len(q.Items()))
	}
}

// TestAPartitionThatQueenCannotStoreHoldsOnlyItself: one lane fails for a
// while, the others go on, and its own order is kept.
func TestAPartitionThatQueenCannotStoreHoldsOnlyItself(t *testing.T) {
	t.Parallel()
	q := newAwayQueen(true)
	var stuck atomic.Bool
	stuck.Store(true)
	q.Verdict = func(it queen.Item) queen.PushStatus {
		if it.Partition == "p0" && stuck.Load() {
			return queen.PushFailed
		}
		return ""
	}
	c := spooling(t, q, keyed("a"))
	w := newSpooling(t, c)
	for i := range 230 { // more than two calls' worth
		w.post(t, "/in/a", "{}", "X-Id", fmt.Sprintf("%03d", i), "X-Key", fmt.Sprint("p", i%2))
	}
	q.away.Store(false)
	until(t, "the other partition is replayed", func() bool { return len(q.Items()) == 115 })
	stuck.Store(false)
	until(t, "all is replayed", func() bool { return len(q.Items()) == 230 })
	checkOrder(t, q.Items(), 230)
}

// TestTheNextProcessGoesOnWithTheSpool: also where nobody asks for the source
// any more.
func TestTheNextProcessGoesOnWithTheSpool(t *testing.T) {
	t.Parallel()
	q := newAwayQueen(true)
	c := spooling(t, q, keyed("a"), open("b"))
	w := newSpooling(t, c)
	for i := range 5 {
		w.post(t, "/in/a", "{}", "X-Id", fmt.Sprintf("%02d", i), "X-Key", "one")
	}
	if err := w.stop(); err != nil {
		t.Errorf("Run = %v, want a clean stop: what is left is on disk", err)
	}
	next := newAwayQueen(false)
	c.Sources, c.Queen = c.Sources[1:], next
	newSpooling(t, c)
	until(t, "all is replayed", func() bool { return len(next.Items()) == 5 })
	checkOrder(t, next.Items(), 5)
}

// TestStopSpoolsWhatIsLeft: what a stop would cut off is on disk instead.
func TestStopSpoolsWhatIsLeft(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{}, 8)
	c := spooling(t, &queentest.Shelf{Before: blockUntil(entered, nil)}, open("a"))
	c.StopTimeout = 50 * time.Millisecond
	c.Settings.EnqueueTimeout = time.Minute
	s, _ := newServer(t, c)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Server: s, addr: l.Addr().String()}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, l) }()
	done := make(chan int, 1)
	go func() { res, _ := w.post(t, "/in/a", "{}", "X-Id", "1"); done <- res.StatusCode }()
	<-entered
	cancel()
	if err := <-ended; err != nil && !strings.Contains(err.Error(), "still open") {
		t.Errorf("Run = %v", err)
	}
	if got := <-done; got != 200 {
		t.Errorf("status %d, want 200: the event is on disk", got)
	}
	if s := status(t, c.Settings.Spool.Dir); len(s.Queues) != 1 || s.Queues[0].Events != 1 {
		t.Errorf("ReadSpool = %+v, want the event", s)
	}
}

// TestASpoolUnderLoadThroughOutages: senders that resend what was not
// accepted, while Queen comes and goes.
func TestASpoolUnderLoadThroughOutages(t *testing.T) {
	t.Parallel()
	q := newAwayQueen(false)
	c := spooling(t, q, keyed("a"))
	w := newSpooling(t, c)
	var senders sync.WaitGroup
	for sender := range 6 {
		senders.Go(func() {
			for i := range 60 {
				id, key := fmt.Sprintf("%d-%03d", sender, i), fmt.Sprint("p", sender)
				for try := 0; ; try++ {
					if res, _ := w.post(t, "/in/a", "{}", "X-Id", id, "X-Key", key); res.StatusCode == 200 {
						break
					}
					if try > 20 {
						t.Errorf("%s was never accepted", id)
						return
					}
				}
				if i%10 == sender {
					q.away.Store(!q.away.Load())
				}
			}
		})
	}
	senders.Wait()
	q.away.Store(false)
	until(t, "all is replayed", func() bool { return len(q.Items()) >= 360 })
	checkOrder(t, q.Items(), 360)
}
