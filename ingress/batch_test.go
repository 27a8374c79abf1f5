package ingress_test

import (
	"fmt"
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
	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
	"github.com/queenbridge/queenbridge/ingress"
)

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

// The batcher's own behaviour is tested with queen.Buffer; here is what requests
// see of it.

func TestWhatArrivesDuringAPushIsTheNextBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		entered, leave := make(chan struct{}, 100), make(chan struct{})
		s, q := newServer(t, ingress.Config{Sources: []bridge.Source{keyed("a")},
			Queen: &queentest.Shelf{Before: blockUntil(entered, leave)}})
		c := crowd{h: s.Handler()}
		var recs []*httptest.ResponseRecorder
		for i := range 10 {
			recs = append(recs, c.send("/in/a", fmt.Sprint(i), fmt.Sprint("p", i)))
		}
		if n := len(q.Pushes()); n != 1 {
			t.Fatalf("%d pushes in flight, want 1: the first starts at once, no second one beside it", n)
		}
		close(leave)
		c.wg.Wait()
		var sizes []int
		for _, items := range q.Pushes() {
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

func TestAtTheBoundARequestWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		entered, leave := make(chan struct{}, 100), make(chan struct{})
		c := ingress.Config{Sources: []bridge.Source{keyed("a")}, Queen: &queentest.Shelf{Before: blockUntil(entered, leave)}}
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
		if got := ids(q.Items()); !slices.IsSorted(got) || len(got) != 12 {
			t.Errorf("stored %v, want 12 in order of arrival", got)
		}
	})
}

func TestAtTheBoundARequestThatWaitsTooLongIs503(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		entered := make(chan struct{}, 100)
		c := ingress.Config{Sources: []bridge.Source{keyed("a")}, Queen: &queentest.Shelf{Before: blockUntil(entered, nil)}}
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

func TestLingerWaitsForMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := ingress.Config{Sources: []bridge.Source{keyed("a")}, Queen: &queentest.Shelf{}}
		c.Settings.Batch.Linger = 20 * time.Millisecond
		c.Settings.Batch.MaxItems = 3
		s, q := newServer(t, c)
		cr := crowd{h: s.Handler()}
		start := time.Now()
		cr.send("/in/a", "1", "p")
		time.Sleep(10 * time.Millisecond)
		cr.send("/in/a", "2", "p")
		cr.wg.Wait()
		if took := time.Since(start); took != 20*time.Millisecond || len(q.Pushes()) != 1 {
			t.Errorf("%d pushes after %v, want 1 after 20ms", len(q.Pushes()), took)
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
		s, _ := newServer(t, ingress.Config{Sources: []bridge.Source{open("a")}, Queen: &queentest.Shelf{}})
		if rec := call(s.Handler(), "/in/a", "{}", "X-Id", "1"); rec.Code != 200 {
			t.Errorf("status %d, want 200", rec.Code)
		}
	})
}
