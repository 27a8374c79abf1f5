package dispatch_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/queenbridge/queenbridge/bridge"
)

// fate is what a function does with one event, whatever comes with it.
type fate struct {
	fails  int // calls that fail before it succeeds; -1: all
	status int // of a failing call
}

// story is a function that treats each event by its fate, and says so in one
// of the ways functions have.
type story struct {
	fates   map[string]fate
	reports bool

	mu        sync.Mutex
	failed    map[string]int
	delivered map[string]int
	trouble   []string
}

func (s *story) answer(t testing.TB) func(context.Context, call) bridge.Response {
	return func(_ context.Context, c call) bridge.Response {
		s.mu.Lock()
		defer s.mu.Unlock()
		events := c.events(t)
		if c.Attempt < 1 || len(events) == 0 {
			s.trouble = append(s.trouble, fmt.Sprintf("call %+v", c))
		}
		var ids []string
		status := 0
		for i, e := range events {
			f := s.fates[e]
			if f.fails >= 0 && s.failed[e] >= f.fails {
				continue
			}
			s.failed[e]++
			ids, status = append(ids, fmt.Sprintf(`{"itemIdentifier":"%d"}`, i)), f.status
		}
		switch {
		case len(ids) == 0:
			s.done(events, nil)
			return bridge.Response{Status: 200}
		case s.reports:
			s.done(events, ids)
			return bridge.Response{Status: 200, Body: []byte(`{"batchItemFailures":[` + strings.Join(ids, ",") + `]}`)}
		}
		return bridge.Response{Status: status, Header: http.Header{}}
	}
}

// done counts what a call delivered: all but the failed.
func (s *story) done(events, ids []string) {
	for i, e := range events {
		failed := false
		for _, id := range ids {
			failed = failed || id == fmt.Sprintf(`{"itemIdentifier":"%d"}`, i)
		}
		if !failed {
			s.delivered[e]++
		}
	}
}

// Random failures of single events in batches lose nothing: each event ends
// delivered, or dead where its fate is to fail for ever, and never for the
// fault of another.
func TestEachEventOfABatchEndsByItsOwnFate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.SampledFrom([]int{2, 3, 7, 16}).Draw(rt, "size")
		events := rapid.IntRange(1, 40).Draw(rt, "events")
		ordering := rapid.SampledFrom([]bridge.Ordering{bridge.OrderingNone, bridge.OrderingPartition}).Draw(rt, "ordering")
		s := &story{fates: map[string]fate{}, failed: map[string]int{}, delivered: map[string]int{}, reports: rapid.Bool().Draw(rt, "reports")}
		payloads := make([]string, events)
		for i := range payloads {
			payloads[i] = fmt.Sprintf(`{"p%d":%d}`, i%3, i)
			f := fate{status: 500}
			switch rapid.IntRange(0, 9).Draw(rt, "fate") {
			case 0:
				f = fate{fails: -1, status: rapid.SampledFrom([]int{400, 500, 413}).Draw(rt, "status")}
			case 1:
				f.fails = 1
			}
			s.fates[payloads[i]] = f
		}
		inBubble(t, nil, func(k *kit) {
			k.fn.answers(s.answer(t))
			r := batchRoute(size, 0)
			r.Ordering, r.ReportItemFailures = ordering, s.reports
			r.Retry.MaxAttempts = rapid.IntRange(6, 12).Draw(rt, "max_attempts")
			for i, p := range payloads {
				k.push("q", fmt.Sprint("p", i%3), p)
			}
			p := k.start(nil, r)
			// One partition may hold several events that fail for ever, each 12
			// times, and with ordering partition one after the other.
			for range 8 {
				if k.wait(time.Hour); k.depth("q", r.Group) == 0 && k.timers(r.Name) == 0 {
					break
				}
			}
			s.check(t, k, r)
			p.stop()
		})
		if t.Failed() {
			rt.Fatalf("size %d, %d events, %s, reports %v, fates %v", size, events, ordering, s.reports, s.fates)
		}
	})
}

func (s *story) check(t *testing.T, k *kit, r bridge.Route) {
	t.Helper()
	dead := map[string]bool{}
	for _, g := range k.graves(r.Name) {
		dead[string(g.Payload)] = true
		if g.reason.Attempts > r.Retry.MaxAttempts {
			t.Errorf("%s: %d attempts, more than %d", g.Payload, g.reason.Attempts, r.Retry.MaxAttempts)
		}
	}
	for e, f := range s.fates {
		switch {
		case f.fails < 0 && !dead[e]:
			t.Errorf("%s fails for ever and is no dead letter", e)
		case f.fails >= 0 && dead[e]:
			t.Errorf("%s is a dead letter for the fault of another", e)
		case f.fails >= 0 && s.delivered[e] == 0:
			t.Errorf("%s was never delivered", e)
		case f.fails < 0 && s.delivered[e] > 0:
			t.Errorf("%s was delivered", e)
		case r.Ordering == bridge.OrderingNone && s.delivered[e] > 1:
			t.Errorf("%s was delivered %d times", e, s.delivered[e])
		}
	}
	for _, trouble := range s.trouble {
		t.Error(trouble)
	}
	k.settledAll(r)
}
