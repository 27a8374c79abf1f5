package ingress_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/ingress"
)

// In this file time is faked: whatever waits, waits no real time.

var errAway = errors.New("queen is away")

// keyed is a source whose partitions come from the header X-Key.
func keyed(name string) bridge.Source {
	s := open(name)
	s.Partition = "header:X-Key"
	return s
}

// crowd sends requests side by side.
type crowd struct {
	h  http.Handler
	wg sync.WaitGroup
}

// send starts a request with an id and a partition and waits until it waits.
func (c *crowd) send(path, id, key string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader("{}"))
	r.Header.Set("X-Id", id)
	r.Header.Set("X-Key", key)
	c.wg.Go(func() { c.h.ServeHTTP(rec, r) })
	synctest.Wait()
	return rec
}

func statusOf(recs []*httptest.ResponseRecorder) []int {
	var out []int
	for _, r := range recs {
		out = append(out, r.Code)
	}
	return out
}

func all(n, status int) []int { return slices.Repeat([]int{status}, n) }

func TestWhatArrivesDuringAPushIsTheNextBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		entered, leave := make(chan struct{}, 100), make(chan struct{})
		s, q := newServer(t, ingress.Config{Sources: []bridge.Source{keyed("a")},
			Queen: &fakeQueen{before: blockUntil(entered, leave)}})
		c := crowd{h: s.Handler()}
		var recs []*httptest.ResponseRecorder
		for i := range 10 {
			recs = append(recs, c.send("/in/a", fmt.Sprint(i), fmt.Sprint("p", i)))
		}
		if n := len(q.calls()); n != 1 {
			t.Fatalf("%d pushes in flight, want 1: the first starts at once, no second one beside it", n)
		}
		close(leave)
		c.wg.Wait()
		var sizes []int
		for _, items := range q.calls() {
			sizes = append(sizes, len(items))
		}
		if diff := cmp.Diff([]int{1, 9}, sizes); diff != "" {
			t.Errorf("batch sizes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(all(10, 200), statusOf(recs)); diff != "" {
			t.Errorf("statuses (-want +got):\n%s", diff)
		}
	})
}

func TestASecondPushFliesOnlyWithAFullBatchAndOtherPartitions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		entered, leave := make(chan struct{}, 100), make(chan struct{})
		c := ingress.Config{Sources: []bridge.Source{keyed("a")}, Queen: &fakeQueen{before: blockUntil(entered, leave)}}
		c.Settings.Batch.MaxItems = 3
		s, q := newServer(t, c)
		cr := crowd{h: s.Handler()}
		cr.send("/in/a", "0", "p0")
		for i := range 4 { // of the partition in flight: however many, they wait
			cr.send("/in/a", fmt.Sprint("same", i), "p0")
		}
		cr.send("/in/a", "1", "p1")
		cr.send("/in/a", "2", "p2")
		if n := len(q.calls()); n != 1 {
			t.Fatalf("%d pushes, want 1: only two items could fly", n)
		}
		cr.send("/in/a", "3", "p3")
		calls := q.calls()
		if len(calls) != 2 {
			t.Fatalf("%d pushes, want a second one beside the first: a full batch waits", len(calls))
		}
		if diff := cmp.Diff([]string{"none:1", "none:2", "none:3"}, ids(calls[1])); diff != "" {
			t.Errorf("second push (-want +got):\n%s", diff)
		}
		close(leave)
		cr.wg.Wait()
		if n := len(q.stored()); n != 8 {
			t.Errorf("%d items stored, want 8", n)
		}
	})
}

// TestOnePartitionNeverHasTwoPushesInFlight runs a crowd against a Queen that
// watches itself.
func TestOnePartitionNeverHasTwoPushesInFlightAndKeepsItsOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		flying := map[string]bool{}
		n := 0
		q := &fakeQueen{before: func(_ context.Context, items []queen.Item) error {
			mu.Lock()
			mine := map[string]bool{}
			for _, it := range items {
				if flying[it.Partition] && !mine[it.Partition] {
					t.Errorf("partition %s has two pushes in flight", it.Partition)
				}
				flying[it.Partition], mine[it.Partition] = true, true
			}
			n++
			fail, takes := n%3 == 0, time.Duration(n%7)*time.Millisecond
			mu.Unlock()
			time.Sleep(takes)
			mu.Lock()
			defer mu.Unlock()
			for p := range mine {
				delete(flying, p)
			}
			if fail {
				return errAway
			}
			return nil
		}}
		c := ingress.Config{Sources: []bridge.Source{keyed("a")}, Queen: q}
		c.Settings.Batch.MaxItems, c.Settings.Batch.MaxPending = 4, 1000
		c.Settings.EnqueueTimeout = time.Hour
		s, _ := newServer(t, c)
		cr := crowd{h: s.Handler()}
		for i := range 200 {
			cr.send("/in/a", fmt.Sprintf("%04d", i), fmt.Sprint("p", i%9))
		}
		cr.wg.Wait()
		last := map[string]string{}
		for _, it := range q.stored() {
			if it.TransactionID <= last[it.Partition] {
				t.Errorf("partition %s: %s stored after %s", it.Partition, it.TransactionID, last[it.Partition])
			}
			last[it.Partition] = it.TransactionID
		}
		if n := len(q.stored()); n != 200 {
			t.Errorf("%d items stored, want 200", n)
		}
	})
}

func TestAFailedBatchIsRetriedInOrderWithBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		q := &fakeQueen{before: func(context.Context, []queen.Item) error {
			if time.Since(start) < time.Second {
				return errAway
			}
			return nil
		}}
		s, _ := newServer(t, ingress.Config{Sources: []bridge.Source{keyed("a")}, Queen: q})
		cr := crowd{h: s.Handler()}
		var recs []*httptest.ResponseRecorder
		for i := range 5 {
			recs = append(recs, cr.send("/in/a", fmt.Sprint(i), "p"))
			time.Sleep(10 * time.Millisecond)
		}
		cr.wg.Wait()
		if diff := cmp.Diff(all(5, 200), statusOf(recs)); diff != "" {
			t.Errorf("statuses (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"none:0", "none:1", "none:2", "none:3", "none:4"}, ids(q.stored())); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
		if n := len(q.calls()); n < 3 || n > 7 {
			t.Errorf("%d pushes in a second of outage, want a few: backoff from 250 ms", n)
		}
	})
}

func TestDeadlineIs503WithRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueen{before: func(context.Context, []queen.Item) error { return errAway }}
		slack := bridge.Source{Name: "slack", Scheme: "slack", Secrets: []bridge.Secret{"s"}}
		s, _ := newServer(t, ingress.Config{Sources: []bridge.Source{keyed("a"), slack}, Queen: q})
		start := time.Now()
		rec := call(s.Handler(), "/in/a", "{}", "X-Id", "1")
		if rec.Code != 503 || rec.Header().Get("Retry-After") != "30" {
			t.Errorf("status %d, Retry-After %q; want 503, 30", rec.Code, rec.Header().Get("Retry-After"))
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("answered after %v, want 5s", took)
		}
		// Slack hangs up after 3 s.
		start = time.Now()
		stamp := fmt.Sprint(start.Unix())
		sig := hmacHex("s", []byte("v0:"+stamp+":{}"))
		rec = call(s.Handler(), "/in/slack", "{}", "X-Slack-Request-Timestamp", stamp, "X-Slack-Signature", "v0="+sig)
		if took := time.Since(start); rec.Code != 503 || took != 2500*time.Millisecond {
			t.Errorf("slack: status %d after %v, want 503 after 2.5s", rec.Code, took)
		}
	})
}

func TestAHangingPushDoesNotHoldRequestsPastTheirDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		entered := make(chan struct{}, 100)
		s, q := newServer(t, ingress.Config{Sources: []bridge.Source{keyed("a")},
			Queen: &fakeQueen{before: blockUntil(entered, nil)}})
		cr := crowd{h: s.Handler()}
		start := time.Now()
		var recs []*httptest.ResponseRecorder
		for i := range 20 {
			recs = append(recs, cr.send("/in/a", fmt.Sprint(i), "p"))
			time.Sleep(100 * time.Millisecond)
		}
		cr.wg.Wait()
		if diff := cmp.Diff(all(20, 503), statusOf(recs)); diff != "" {
			t.Errorf("statuses (-want +got):\n%s", diff)
		}
		if took := time.Since(start); took > 7*time.Second {
			t.Errorf("the last one took %v", took)
		}
		time.Sleep(time.Minute) // what was given up does not come back
		n := len(q.calls())
		time.Sleep(time.Hour)
		if m := len(q.calls()); m != n {
			t.Errorf("%d pushes for nobody", m-n)
		}
	})
}

func TestAtTheBoundARequestWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		entered, leave := make(chan struct{}, 100), make(chan struct{})
		c := ingress.Config{Sources: []bridge.Source{keyed("a")}, Queen: &fakeQueen{before: blockUntil(entered, leave)}}
		c.Settings.Batch.MaxItems, c.Settings.Batch.MaxPending = 2, 4
		s, q := newServer(t, c)
		cr := crowd{h: s.Handler()}
		var recs []*httptest.ResponseRecorder
		for i := range 12 {
			recs = append(recs, cr.send("/in/a", fmt.Sprintf("%02d", i), "p"))
		}
		time.Sleep(4 * time.Second)
		close(leave)
		cr.wg.Wait()
		if diff := cmp.Diff(all(12, 200), statusOf(recs)); diff != "" {
			t.Errorf("statuses (-want +got):\n%s", diff)
		}
		if got := ids(q.stored()); !slices.IsSorted(got) || len(got) != 12 {
			t.Errorf("stored %v, want 12 in order of arrival", got)
		}
	})
}

func TestAtTheBoundARequestThatWaitsTooLongIs503(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		entered := make(chan struct{}, 100)
		c := ingress.Config{Sources: []bridge.Source{keyed("a")}, Queen: &fakeQueen{before: blockUntil(entered, nil)}}
		c.Settings.Batch.MaxPending = 2
		s, _ := newServer(t, c)
		cr := crowd{h: s.Handler()}
		var recs []*httptest.ResponseRecorder
		start := time.Now()
		for i := range 6 {
			recs = append(recs, cr.send("/in/a", fmt.Sprint(i), fmt.Sprint("p", i)))
		}
		cr.wg.Wait()
		if diff := cmp.Diff(all(6, 503), statusOf(recs)); diff != "" {
			t.Errorf("statuses (-want +got):\n%s", diff)
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("answered after %v, want 5s", took)
		}
	})
}

// TestLostReplyIsADuplicateNotALoss: Queen stored the items, the answer got
// lost; the same ids are pushed again.
func TestLostReplyIsADuplicateNotALoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lost := false
		q := &fakeQueen{after: func([]queen.Item) error {
			if !lost {
				lost = true
				return errAway
			}
			return nil
		}}
		s, _ := newServer(t, ingress.Config{Sources: []bridge.Source{keyed("a")}, Queen: q})
		rec := call(s.Handler(), "/in/a", "{}", "X-Id", "1")
		if rec.Code != 200 {
			t.Errorf("status %d, want 200", rec.Code)
		}
		if n := len(q.stored()); n != 1 {
			t.Errorf("%d items stored, want 1", n)
		}
	})
}

func TestAFailedItemIsRetriedAloneAndItsPartitionKeepsItsOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		q := &fakeQueen{verdict: func(it queen.Item) queen.PushStatus {
			if it.Partition == "bad" && time.Since(start) < time.Second {
				return queen.PushFailed
			}
			return ""
		}}
		s, _ := newServer(t, ingress.Config{Sources: []bridge.Source{keyed("a")}, Queen: q})
		cr := crowd{h: s.Handler()}
		bad := []*httptest.ResponseRecorder{cr.send("/in/a", "1", "bad"), cr.send("/in/a", "2", "bad")}
		good := cr.send("/in/a", "3", "good")
		synctest.Wait()
		if took := time.Since(start); good.Code != 200 || took != 0 {
			t.Errorf("another partition: status %d after %v, want 200 at once", good.Code, took)
		}
		cr.wg.Wait()
		if diff := cmp.Diff(all(2, 200), statusOf(bad)); diff != "" {
			t.Errorf("statuses (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"none:3", "none:1", "none:2"}, ids(q.stored())); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
	})
}

func TestAnItemQueenNeverTakesDoesNotFailItsNeighbours(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		entered, leave := make(chan struct{}, 100), make(chan struct{})
		q := &fakeQueen{}
		block := blockUntil(entered, leave)
		q.before = func(ctx context.Context, items []queen.Item) error {
			if err := block(ctx, items); err != nil {
				return err
			}
			for _, it := range items {
				if it.TransactionID == "none:poison" {
					return &queen.StatusError{Method: "POST", Path: "/api/v1/push", Status: 400, Text: "bad body"}
				}
			}
			return nil
		}
		s, _ := newServer(t, ingress.Config{Sources: []bridge.Source{keyed("a")}, Queen: q})
		cr := crowd{h: s.Handler()}
		var good []*httptest.ResponseRecorder
		good = append(good, cr.send("/in/a", "first", "p0"))
		for i := range 20 {
			if i == 7 {
				bad := cr.send("/in/a", "poison", "p1")
				defer func() {
					if bad.Code != 503 {
						t.Errorf("poison: status %d, want 503", bad.Code)
					}
				}()
			}
			good = append(good, cr.send("/in/a", fmt.Sprintf("%02d", i), "p1"))
		}
		start := time.Now()
		close(leave)
		cr.wg.Wait()
		if diff := cmp.Diff(all(21, 200), statusOf(good)); diff != "" {
			t.Errorf("statuses (-want +got):\n%s", diff)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("neighbours waited %v", took)
		}
		if got := ids(q.stored()); !slices.IsSorted(got[1:]) {
			t.Errorf("stored %v, want order of arrival", got)
		}
	})
}

func TestBufferedIsNotDurableUnlessAccepted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		buffered := func(queen.Item) queen.PushStatus { return queen.PushBuffered }
		strict, _ := newServer(t, ingress.Config{Sources: []bridge.Source{open("a")}, Queen: &fakeQueen{verdict: buffered}})
		c := ingress.Config{Sources: []bridge.Source{open("a")}, Queen: &fakeQueen{verdict: buffered}}
		c.Settings.AcceptBuffered = true
		lax, q := newServer(t, c)
		if rec := call(strict.Handler(), "/in/a", "{}", "X-Id", "1"); rec.Code != 503 || rec.Header().Get("Retry-After") != "30" {
			t.Errorf("strict: status %d, want 503 with Retry-After", rec.Code)
		}
		for range 2 {
			if rec := call(lax.Handler(), "/in/a", "{}", "X-Id", "1"); rec.Code != 200 || rec.Header().Get("Queen-Duplicate") != "" {
				t.Errorf("accept_buffered: status %d, duplicate %q; want 200, none", rec.Code, rec.Header().Get("Queen-Duplicate"))
			}
		}
		if n := len(q.calls()); n != 2 {
			t.Errorf("%d pushes, want 2: a buffered id may still be lost and is not remembered", n)
		}
	})
}

func TestLingerWaitsForMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := ingress.Config{Sources: []bridge.Source{keyed("a")}, Queen: &fakeQueen{}}
		c.Settings.Batch.Linger = 20 * time.Millisecond
		c.Settings.Batch.MaxItems = 3
		s, q := newServer(t, c)
		cr := crowd{h: s.Handler()}
		start := time.Now()
		cr.send("/in/a", "1", "p")
		time.Sleep(10 * time.Millisecond)
		cr.send("/in/a", "2", "p")
		cr.wg.Wait()
		if took := time.Since(start); took != 20*time.Millisecond || len(q.calls()) != 1 {
			t.Errorf("%d pushes after %v, want 1 after 20ms", len(q.calls()), took)
		}
		for i := range 3 {
			cr.send("/in/a", fmt.Sprint("full", i), "p")
		}
		cr.wg.Wait()
		if took := time.Since(start); took != 20*time.Millisecond {
			t.Errorf("a full batch waited until %v", took)
		}
	})
}

// TestAnIdleServerCostsNothing: no goroutine of ours is left once all is
// answered (the bubble would not end otherwise), and no timer ticks.
func TestAnIdleServerCostsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, ingress.Config{Sources: []bridge.Source{open("a")}, Queen: &fakeQueen{}})
		if rec := call(s.Handler(), "/in/a", "{}", "X-Id", "1"); rec.Code != 200 {
			t.Errorf("status %d, want 200", rec.Code)
		}
	})
}

// pipeListener serves connections from memory, so that a fake clock rules
// them, too.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func (l *pipeListener) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			client, server := net.Pipe()
			select {
			case l.conns <- server:
				return client, nil
			case <-l.closed:
				return nil, net.ErrClosed
			}
		}}}
}

func TestStopFinishesWhatWasReceived(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueen{before: func(ctx context.Context, _ []queen.Item) error {
			time.Sleep(2 * time.Second)
			return nil
		}}
		s, _ := newServer(t, ingress.Config{Sources: []bridge.Source{open("a")}, Queen: q})
		l := newPipeListener()
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- s.Run(ctx, l) }()
		status := make(chan int, 1)
		go func() { status <- postStatus(l.client()) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if _, err := l.client().Post("http://h/in/a", "", strings.NewReader("{}")); err == nil {
			t.Error("a new connection was taken after the stop")
		}
		if got := <-status; got != 200 {
			t.Errorf("a request received before the stop: status %d, want 200", got)
		}
		if err := <-stopped; err != nil {
			t.Errorf("Run = %v, want nil: all was stored", err)
		}
		if n := len(q.stored()); n != 1 {
			t.Errorf("%d items stored, want 1", n)
		}
	})
}

func postStatus(c *http.Client) int {
	res, err := c.Post("http://h/in/a", "", strings.NewReader("{}"))
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}

func TestStopCutsOffWhatIsLeftAndSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		entered := make(chan struct{}, 10)
		logs := &logBuffer{}
		c := ingress.Config{Sources: []bridge.Source{open("a")}, Queen: &fakeQueen{before: blockUntil(entered, nil)},
			Logger: jsonLogger(logs), StopTimeout: time.Second}
		c.Settings.EnqueueTimeout = time.Hour
		s, _ := newServer(t, c)
		l := newPipeListener()
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- s.Run(ctx, l) }()
		status := make(chan int, 1)
		go func() { status <- postStatus(l.client()) }()
		<-entered
		start := time.Now()
		cancel()
		err := <-stopped
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("the stop took %v, want 1s", took)
		}
		if err == nil || !strings.Contains(err.Error(), `1 events for queue "a" not stored`) {
			t.Errorf("Run = %v, want it to name what was left", err)
		}
		if !strings.Contains(logs.String(), "ingress stopped with events not stored") {
			t.Errorf("log does not say what was left:\n%s", logs)
		}
		if got := <-status; got == 200 {
			t.Errorf("status 200 for an event that was not stored")
		}
		if rec := call(s.Handler(), "/in/a", "{}"); rec.Code != 503 {
			t.Errorf("after the stop: status %d, want 503", rec.Code)
		}
	})
}
