package queen_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
)

// In the tests of the buffer time is faked: whatever waits, waits no real time.

func TestWhatArrivesDuringAPushIsTheNextBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		s := &queentest.Shelf{Before: held(leave)}
		c := crowd{Buffer: atOnce(t, s, queen.BufferConfig{})}
		for i := range 10 {
			c.submit(fmt.Sprint(i), fmt.Sprint("p", i))
		}
		if n := len(sizes(s)); n != 1 {
			t.Fatalf("%d pushes in flight, want 1: the first starts at once, no second one beside it", n)
		}
		close(leave)
		c.check(t, queen.BundleStored)
		if diff := cmp.Diff([]int{1, 9}, sizes(s)); diff != "" {
			t.Errorf("batch sizes (-want +got):\n%s", diff)
		}
	})
}

func TestASecondPushFliesOnlyWithAFullBatchAndOtherPartitions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		s := &queentest.Shelf{Before: held(leave)}
		c := crowd{Buffer: atOnce(t, s, queen.BufferConfig{MaxItems: 3})}
		c.submit("0", "p0")
		for i := range 4 { // of the partition in flight: however many, they wait
			c.submit(fmt.Sprint("same", i), "p0")
		}
		c.submit("1", "p1")
		c.submit("2", "p2")
		if n := len(sizes(s)); n != 1 {
			t.Fatalf("%d pushes, want 1: only two items could fly", n)
		}
		c.submit("3", "p3")
		if n := len(sizes(s)); n != 2 {
			t.Fatalf("%d pushes, want a second one beside the first: a full batch waits", n)
		}
		if diff := cmp.Diff([]string{"1", "2", "3"}, push(s, 1)); diff != "" {
			t.Errorf("second push (-want +got):\n%s", diff)
		}
		close(leave)
		c.check(t, queen.BundleStored)
		if n := len(stored(s)); n != 8 {
			t.Errorf("%d items stored, want 8", n)
		}
	})
}

// A backlog flies in full pushes side by side.
func TestABacklogFliesSideBySide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leave, away := make(chan struct{}), true
		block := held(leave)
		s := &queentest.Shelf{}
		s.Before = func(ctx context.Context, items []queen.Item) error {
			if away {
				away = false
				return errAway
			}
			return block(ctx, items)
		}
		c := crowd{Buffer: atOnce(t, s, queen.BufferConfig{MaxItems: 3})}
		for i := range 8 {
			c.submit(fmt.Sprint(i), fmt.Sprint("p", i))
		}
		time.Sleep(time.Second)
		if diff := cmp.Diff([]int{1, 3, 3}, sizes(s)); diff != "" {
			t.Errorf("batch sizes (-want +got):\n%s", diff)
		}
		close(leave)
		c.check(t, queen.BundleStored)
	})
}

// A bundle that waits for one of its partitions is not overtaken in the
// others.
func TestABundleThatWaitsBarsItsPartitions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		s := &queentest.Shelf{Before: held(leave)}
		c := crowd{Buffer: atOnce(t, s, queen.BufferConfig{MaxItems: 2})}
		c.submit("first", "p1")
		c.wg.Go(func() { c.Submit(bundle(item("a1", "p1"), item("a2", "p2")), time.Time{}) })
		synctest.Wait()
		c.submit("b2", "p2")
		c.submit("b3", "p3")
		c.submit("b4", "p4")
		if diff := cmp.Diff([]string{"b3", "b4"}, push(s, 1)); diff != "" {
			t.Errorf("second push (-want +got):\n%s", diff)
		}
		close(leave)
		c.check(t, queen.BundleStored)
	})
}

func TestABatchIsFullByBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		s := &queentest.Shelf{Before: held(leave)}
		c := crowd{Buffer: atOnce(t, s, queen.BufferConfig{MaxBytes: 6})}
		for i := range 8 { // of 2 bytes each
			c.submit(fmt.Sprint(i), fmt.Sprint("p", i))
		}
		if diff := cmp.Diff([]int{1, 3, 3}, sizes(s)); diff != "" {
			t.Errorf("batch sizes (-want +got):\n%s", diff)
		}
		close(leave)
		c.check(t, queen.BundleStored)
	})
}

// A crowd against a Queen that watches itself and fails now and then.
func TestOnePartitionNeverHasTwoPushesInFlightAndKeepsItsOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		flying := map[string]bool{}
		n := 0
		s := &queentest.Shelf{}
		s.Before = func(_ context.Context, items []queen.Item) error {
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
		}
		s.Verdict = func(it queen.Item) queen.PushStatus {
			if n%5 == 0 && it.Partition == "p3" {
				return queen.PushFailed
			}
			return ""
		}
		b := atOnce(t, s, queen.BufferConfig{MaxItems: 4, MaxPending: 1000})
		var wg sync.WaitGroup
		for i := range 200 {
			g := bundle(item(fmt.Sprintf("%04d", i), fmt.Sprint("p", i%9)))
			wg.Go(func() {
				if r := b.Submit(g, time.Time{}); r != queen.BundleStored {
					t.Errorf("result %d", r)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		last := map[string]string{}
		for _, it := range s.Items() {
			if it.TransactionID <= last[it.Partition] {
				t.Errorf("partition %s: %s stored after %s", it.Partition, it.TransactionID, last[it.Partition])
			}
			last[it.Partition] = it.TransactionID
		}
		if n := len(stored(s)); n != 200 {
			t.Errorf("%d items stored, want 200", n)
		}
	})
}

func TestAtTheBoundABundleWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]queen.BufferConfig{
		"items": {MaxItems: 2, MaxPending: 4},
		"bytes": {MaxItems: 2, MaxPendingBytes: 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				leave := make(chan struct{})
				s := &queentest.Shelf{Before: held(leave)}
				pending := 0
				cfg.Observer.Pending = func(n int) { pending = max(pending, n) }
				c := crowd{Buffer: atOnce(t, s, cfg)}
				for i := range 12 {
					c.submit(fmt.Sprintf("%02d", i), "p")
				}
				time.Sleep(4 * time.Second)
				close(leave)
				c.check(t, queen.BundleStored)
				if got := stored(s); !slices.IsSorted(got) || len(got) != 12 {
					t.Errorf("stored %v, want 12 in order of arrival", got)
				}
				if pending != 4 {
					t.Errorf("%d items pending at most, want 4", pending)
				}
			})
		})
	}
}

func TestAtTheBoundABundleThatWaitsTooLongExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &queentest.Shelf{Before: held(nil)}
		c := crowd{Buffer: atOnce(t, s, queen.BufferConfig{MaxPending: 2})}
		start := time.Now()
		for i := range 6 {
			c.submit(fmt.Sprint(i), fmt.Sprint("p", i))
		}
		c.check(t, queen.BundleExpired)
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("expired after %v, want 5s", took)
		}
	})
}

func TestLingerWaitsForMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &queentest.Shelf{}
		c := crowd{Buffer: newBuffer(t, s, queen.BufferConfig{Linger: 20 * time.Millisecond, MaxItems: 3})}
		start := time.Now()
		c.submit("1", "p")
		time.Sleep(10 * time.Millisecond)
		c.submit("2", "p")
		c.wg.Wait()
		if took := time.Since(start); took != 20*time.Millisecond || len(sizes(s)) != 1 {
			t.Errorf("%d pushes after %v, want 1 after 20ms", len(sizes(s)), took)
		}
		for i := range 3 {
			c.submit(fmt.Sprint("full", i), "p")
		}
		c.check(t, queen.BundleStored)
		if took := time.Since(start); took != 20*time.Millisecond {
			t.Errorf("a full batch waited until %v", took)
		}
	})
}

// A bundle is one push and one result, whatever its size.
func TestABundleIsNeverDivided(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &queentest.Shelf{}
		b := atOnce(t, s, queen.BufferConfig{MaxItems: 3, MaxPending: 4})
		var many []queen.Item
		for i, id := range numbered("", 10) {
			many = append(many, item(id, fmt.Sprint("p", i%3)))
		}
		g := bundle(append(many, many[0])...)
		if r := b.Submit(g, time.Time{}); r != queen.BundleStored {
			t.Fatalf("result %d", r)
		}
		if diff := cmp.Diff([]int{11}, sizes(s)); diff != "" {
			t.Errorf("batch sizes (-want +got):\n%s", diff)
		}
		if g.Len() != 11 || g.Count(queen.PushQueued) != 10 || g.Count(queen.PushDuplicate) != 1 ||
			g.Status(10) != queen.PushDuplicate || g.Item(10).TransactionID != "000" {
			t.Errorf("bundle of %d: %d queued, %d duplicate", g.Len(), g.Count(queen.PushQueued), g.Count(queen.PushDuplicate))
		}
		g.Reset()
		if r := b.Submit(g, time.Time{}); r != queen.BundleStored || len(sizes(s)) != 1 {
			t.Errorf("an empty bundle: result %d after %d pushes, want stored without one", r, len(sizes(s)))
		}
	})
}

// The room of a payload is used again, its bytes are not.
func TestAResetBundleIsAsNew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &queentest.Shelf{}
		b := atOnce(t, s, queen.BufferConfig{})
		g := queen.NewBundle()
		for i := range 3 {
			it := g.Add()
			if it.Queue != "" || it.TransactionID != "" || len(it.Payload) != 0 || i > 0 && cap(it.Payload) == 0 {
				t.Errorf("round %d: Add() = %+v with room for %d", i, it, cap(it.Payload))
			}
			it.Queue, it.Partition, it.TransactionID = "q", "p", fmt.Sprint(i)
			it.Payload = append(it.Payload, fmt.Sprintf(`{"n":%d}`, i)...)
			if r := b.Submit(g, time.Time{}); r != queen.BundleStored {
				t.Fatalf("result %d", r)
			}
			g.Reset()
		}
		for i, it := range s.Items() {
			if string(it.Payload) != fmt.Sprintf(`{"n":%d}`, i) {
				t.Errorf("payload %d = %s", i, it.Payload)
			}
		}
	})
}

// A bundle that carried a lot does not hold on to its memory.
func TestAResetBundleKeepsLittleRoom(t *testing.T) {
	t.Parallel()
	g := queen.NewBundle()
	for range 1000 {
		it := g.Add()
		it.Payload = append(it.Payload, make([]byte, 1000)...)
	}
	g.Reset()
	large := g.Add()
	large.Payload = make([]byte, 1<<20)
	g.Reset()
	if got := cap(g.Add().Payload); got > 64<<10 {
		t.Errorf("room for a payload of %d bytes is kept, want at most 64 KiB", got)
	}
	room := 0
	for range 1000 {
		room += cap(g.Add().Payload)
	}
	if room > 8000 {
		t.Errorf("room for %d bytes is kept, want that of a few items", room)
	}
}

// TestAnIdleBufferCostsNothing: no goroutine is left once all is decided (the
// bubble would not end otherwise), and no timer ticks.
func TestAnIdleBufferCostsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, err := queen.NewBuffer(queen.BufferConfig{Pusher: &queentest.Shelf{}, Queue: "q"})
		if err != nil {
			t.Fatal(err)
		}
		if r := b.Submit(bundle(item("1", "p")), time.Now().Add(5*time.Second)); r != queen.BundleStored {
			t.Errorf("result %d", r)
		}
	})
}

func TestTheObserverSeesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		note := func(format string, args ...any) { seen = append(seen, fmt.Sprintf(format, args...)) }
		o := queen.BufferObserver{
			Pending: func(n int) { note("pending %d", n) },
			Pushed:  func(n int, took time.Duration) { note("pushed %d in %v", n, took) },
			Failed:  func(err error) { note("failed: %v", err) },
			Refused: func(it *queen.Item, err error) { note("refused %s: %v", it.TransactionID, err) },
			Decided: func(waited time.Duration) { note("decided after %v", waited) },
		}
		answers := []error{errAway, &queen.StatusError{Method: "POST", Path: "/api/v1/push", Status: 400}, nil}
		s := &queentest.Shelf{Before: func(context.Context, []queen.Item) error {
			time.Sleep(time.Second)
			err := answers[0]
			answers = answers[1:]
			return err
		}}
		b := newBuffer(t, s, queen.BufferConfig{Linger: -1, RetryEvery: 2 * time.Second, Observer: o})
		if r := b.Submit(bundle(item("1", "p")), time.Time{}); r != queen.BundleRefused {
			t.Errorf("result %d, want refused", r)
		}
		b.Submit(bundle(item("2", "p")), time.Time{})
		want := []string{"pending 1", "pushed 1 in 1s", "failed: queen is away", "pushed 1 in 1s", "refused 1: POST /api/v1/push: 400",
			"pending 0", "decided after 4s", "pending 1", "pushed 1 in 1s", "pending 0", "decided after 1s"}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestNewBufferRefusesNonsense(t *testing.T) {
	t.Parallel()
	for _, cfg := range []queen.BufferConfig{{}, {Queue: "q"}, {Pusher: &queentest.Shelf{}}, {Pusher: &queentest.Shelf{}, Queue: "a\x00b"}} {
		if b, err := queen.NewBuffer(cfg); err == nil || b != nil {
			t.Errorf("NewBuffer(%+v) = %v, %v; want an error", cfg, b, err)
		}
	}
}
