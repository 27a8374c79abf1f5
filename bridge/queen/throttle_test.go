package queen_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// limited is a transport to nodes that answer 429 to the first requests.
type limited struct {
	times  int    // how often; -1: always
	after  string // Retry-After
	asked  []string
	bodies []string
	at     []time.Time
}

func (l *limited) RoundTrip(r *http.Request) (*http.Response, error) {
	l.asked, l.at = append(l.asked, r.URL.Host), append(l.at, time.Now())
	body, _ := io.ReadAll(r.Body)
	_ = r.Body.Close()
	l.bodies = append(l.bodies, string(body))
	if l.times < 0 || len(l.asked) <= l.times {
		res := response(r, http.StatusTooManyRequests, `{"error":"rate_limited","reason":"rate_limited"}`)
		if l.after != "" {
			res.Header.Set("Retry-After", l.after)
		}
		return res, nil
	}
	if r.Method == http.MethodGet {
		return response(r, 204, ""), nil
	}
	return response(r, 201, `[{"status":"queued"}]`), nil
}

// waits are the pauses between the requests.
func (l *limited) waits() (w []time.Duration) {
	for i := 1; i < len(l.at); i++ {
		w = append(w, l.at[i].Sub(l.at[i-1]))
	}
	return w
}

func about(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if got < want*4/5 || got > want*6/5 {
		t.Errorf("%s: waited %v, want %v ± 20 %%", what, got, want)
	}
}

func throttled(t *testing.T, l *limited) *queen.Client {
	return client(t, queen.Config{URLs: []string{"http://a", "http://b"}, Transport: l})
}

func TestTooManyRequestsIsWaitedOutAtTheSameNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &limited{times: 9}
		if _, err := throttled(t, l).Push(t.Context(), items("a")); err != nil {
			t.Fatal(err)
		}
		if len(l.asked) != 10 {
			t.Fatalf("%d requests, want 10", len(l.asked))
		}
		for i := range l.asked {
			if l.asked[i] != l.asked[0] || l.bodies[i] != l.bodies[0] {
				t.Errorf("request %d went to %s with %s; want the same again", i, l.asked[i], l.bodies[i])
			}
		}
		for i, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
			16 * time.Second, 30 * time.Second, 30 * time.Second, 30 * time.Second} {
			about(t, "wait "+strconv.Itoa(i+1), l.waits()[i], want)
		}
	})
}

func TestTooManyRequestsTenTimesIsTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &limited{times: -1, after: "2"}
		_, err := throttled(t, l).Push(t.Context(), items("a"))
		var status *queen.StatusError
		if !errors.As(err, &status) || status.Status != 429 || status.Code != "rate_limited" || queen.RetryAfter(err) != 2*time.Second ||
			!queen.Temporary(err) || queen.Uncertain(err) {
			t.Errorf("Push() error = %v; want the 429", err)
		}
		if len(l.asked) != 10 {
			t.Errorf("%d requests, want 10", len(l.asked))
		}
		for _, w := range l.waits() {
			about(t, "Retry-After", w, 2*time.Second)
		}
	})
}

func TestRetryAfterMayBeADate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &limited{times: 1, after: time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat)}
		if _, err := throttled(t, l).Push(t.Context(), items("a")); err != nil {
			t.Fatal(err)
		}
		about(t, "date", l.waits()[0], 20*time.Second)
	})
}

func TestPausesAreJittered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := map[time.Duration]bool{}
		for range 20 {
			l := &limited{times: 1, after: "10"}
			_, _ = throttled(t, l).Push(t.Context(), items("a"))
			seen[l.waits()[0]] = true
		}
		if len(seen) < 10 {
			t.Errorf("20 pauses were %v", seen)
		}
	})
}

func TestALongPollWaitsOutTooManyRequestsWithoutEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &limited{times: 100}
		r := popRequest()
		r.Wait = 30 * time.Second
		p, err := throttled(t, l).Pop(t.Context(), r)
		if err != nil || len(l.asked) != 101 {
			t.Errorf("Pop() error = %v after %d requests, want none after 101", err, len(l.asked))
		}
		if last := l.at[len(l.at)-1]; !p.Asked.Equal(last) {
			t.Errorf("Asked = %v, want %v: when the pop that was answered was sent", p.Asked, last)
		}
		plain := &limited{times: -1}
		if _, err := throttled(t, plain).Pop(t.Context(), popRequest()); err == nil || len(plain.asked) != 10 {
			t.Errorf("plain pop: error = %v after %d requests, want one after 10", err, len(plain.asked))
		}
	})
}

// However long the broker asks to wait, a poll looks again within a minute.
func TestALongPollDoesNotSleepForHours(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &limited{times: 3, after: "3600"}
		r := popRequest()
		r.Wait = 30 * time.Second
		if _, err := throttled(t, l).Pop(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		for _, w := range l.waits() {
			about(t, "Retry-After", w, time.Minute)
		}
	})
}

// Who holds leases decides himself how long to wait.
func TestATransactionShowsTooManyRequestsAtOnce(t *testing.T) {
	t.Parallel()
	l := &limited{times: -1, after: "7"}
	_, err := throttled(t, l).Commit(t.Context(), prepare(t, recordedBundle()))
	var refused *queen.RollbackError
	if !errors.As(err, &refused) || refused.Reason != queen.RollbackRateLimited || queen.RetryAfter(err) != 7*time.Second || !queen.Temporary(err) {
		t.Errorf("Commit() error = %v; want rate_limited", err)
	}
	if len(l.asked) != 1 {
		t.Errorf("%d requests, want 1", len(l.asked))
	}
}

func TestAnExtendDoesNotOutwaitItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &limited{times: -1}
		start := time.Now()
		_, err := throttled(t, l).Extend(t.Context(), queen.Lease{ID: "L", Group: "g"}, 15*time.Second)
		if took := time.Since(start); err == nil || took > 5*time.Second || len(l.asked) < 2 {
			t.Errorf("Extend() error = %v after %v and %d requests; want one within a third of 15s", err, took, len(l.asked))
		}
	})
}

// A wait that cannot end in time is not begun: the caller learns why, and when
// to come back.
func TestAWaitBeyondTheDeadlineIsNotBegun(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		after  string
		within time.Duration
	}{{"10", 5 * time.Second}, {"3600", 10 * time.Hour}} {
		t.Run(tt.after, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &limited{times: -1, after: tt.after}
				ctx, cancel := context.WithTimeout(t.Context(), tt.within)
				defer cancel()
				start := time.Now()
				_, err := throttled(t, l).Push(ctx, items("a"))
				seconds, _ := strconv.Atoi(tt.after)
				if time.Since(start) != 0 || queen.RetryAfter(err) != time.Duration(seconds)*time.Second {
					t.Errorf("Push() error = %v after %v; want the 429 at once", err, time.Since(start))
				}
			})
		})
	}
}

func TestCancellingEndsTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &limited{times: -1}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, cancel)
		r := popRequest()
		r.Wait = time.Minute
		start := time.Now()
		_, err := throttled(t, l).Pop(ctx, r)
		if !errors.Is(err, context.Canceled) || queen.Uncertain(err) || time.Since(start) != 10*time.Second {
			t.Errorf("Pop() error = %v after %v; want the cancellation, certain", err, time.Since(start))
		}
	})
}

// What is waited out nobody else sees: it is said, but not each time.
func TestALimitIsLoggedNowAndThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := client(t, queen.Config{URLs: []string{"http://a"}, Transport: &limited{times: -1, after: "5"}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		_, _ = c.Push(t.Context(), items("a")) // ten tries in about 45 s
		if n := strings.Count(log.String(), "queen limits the rate"); n < 3 || n > 5 || !strings.Contains(log.String(), "429: rate_limited") {
			t.Errorf("said %d times, want every 10 s or so, with the reason:\n%s", n, log.String())
		}
	})
}

// While it waits the node may fail: the call goes on as any other.
func TestANodeThatFailsDuringTheWaitIsReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes, c := newCluster(t, queen.StrategyRoundRobin)
		nodes.set("429 {}", "a", "b", "c")
		time.AfterFunc(100*time.Millisecond, func() { nodes.set("", "b", "c"); nodes.set("dial", "a") })
		if err := pop(t, c); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"a", "a", "b"}, nodes.take()); d != "" {
			t.Error(d)
		}
	})
}
