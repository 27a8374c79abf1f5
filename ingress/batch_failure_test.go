package ingress_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
	"github.com/queenbridge/queenbridge/ingress"
)

// In this file time is faked: whatever waits, waits no real time.
var errAway = errors.New("queen is away")

func TestAFailedBatchIsRetriedInOrderWithBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		q := &queentest.Shelf{Before: func(context.Context, []queen.Item) error {
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
		if diff := cmp.Diff([]string{"none:0", "none:1", "none:2", "none:3", "none:4"}, ids(q.Items())); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
		if n := len(q.Pushes()); n < 3 || n > 7 {
			t.Errorf("%d pushes in a second of outage, want a few: backoff from 250 ms", n)
		}
	})
}

func TestDeadlineIs503WithRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &queentest.Shelf{Before: func(context.Context, []queen.Item) error { return errAway }}
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
			Queen: &queentest.Shelf{Before: blockUntil(entered, nil)}})
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
		n := len(q.Pushes())
		time.Sleep(time.Hour)
		if m := len(q.Pushes()); m != n {
			t.Errorf("%d pushes for nobody", m-n)
		}
	})
}

// TestLostReplyIsADuplicateNotALoss: Queen stored the items, the answer got
// lost; the same ids are pushed again.
func TestLostReplyIsADuplicateNotALoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lost := false
		q := &queentest.Shelf{After: func([]queen.Item) error {
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
		if n := len(q.Items()); n != 1 {
			t.Errorf("%d items stored, want 1", n)
		}
	})
}

func TestAFailedItemIsRetriedAloneAndItsPartitionKeepsItsOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		q := &queentest.Shelf{Verdict: func(it queen.Item) queen.PushStatus {
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
		if diff := cmp.Diff([]string{"none:3", "none:1", "none:2"}, ids(q.Items())); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
	})
}

func TestAnItemQueenNeverTakesDoesNotFailItsNeighbours(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		entered, leave := make(chan struct{}, 100), make(chan struct{})
		q := &queentest.Shelf{}
		block := blockUntil(entered, leave)
		q.Before = func(ctx context.Context, items []queen.Item) error {
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
		if got := ids(q.Items()); !slices.IsSorted(got[1:]) {
			t.Errorf("stored %v, want order of arrival", got)
		}
	})
}

func TestBufferedIsNotDurableUnlessAccepted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		buffered := func(queen.Item) queen.PushStatus { return queen.PushBuffered }
		strict, _ := newServer(t, ingress.Config{Sources: []bridge.Source{open("a")}, Queen: &queentest.Shelf{Verdict: buffered}})
		c := ingress.Config{Sources: []bridge.Source{open("a")}, Queen: &queentest.Shelf{Verdict: buffered}}
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
		if n := len(q.Pushes()); n != 2 {
			t.Errorf("%d pushes, want 2: a buffered id may still be lost and is not remembered", n)
		}
	})
}
