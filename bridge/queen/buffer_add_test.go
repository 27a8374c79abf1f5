package queen_test

import (
	"context"
	"errors"
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

func addAll(t *testing.T, b *queen.Buffer, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := b.Add(t.Context(), item(id, "p")); err != nil {
			t.Fatal(err)
		}
	}
}

// The official clients' defaults: 100 items or one second.
func TestAddFlushesAtAHundredItemsOrAfterASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &queentest.Shelf{}
		b := newBuffer(t, s, queen.BufferConfig{})
		addAll(t, b, numbered("a", 99)...)
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		if n := len(sizes(s)); n != 0 {
			t.Fatalf("%d pushes of 99 items within a second, want none", n)
		}
		addAll(t, b, "a099")
		synctest.Wait()
		if diff := cmp.Diff([]int{100}, sizes(s)); diff != "" {
			t.Fatalf("full: (-want +got):\n%s", diff)
		}
		addAll(t, b, "b")
		time.Sleep(500 * time.Millisecond)
		addAll(t, b, "c")
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if diff := cmp.Diff([]int{100, 2}, sizes(s)); diff != "" {
			t.Errorf("after a second: (-want +got):\n%s", diff)
		}
		if want := append(numbered("a", 100), "b", "c"); !slices.Equal(want, stored(s)) {
			t.Errorf("stored %v", stored(s))
		}
	})
}

// A failed batch goes back to the front and is tried every 250 ms; at four
// full batches Add blocks.
func TestAddBlocksAtFourBatchesAndKeepsItsOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &queentest.Shelf{Before: awayFor(10*time.Second, errAway)}
		b := newBuffer(t, s, queen.BufferConfig{})
		start := time.Now()
		addAll(t, b, numbered("", 400)...)
		if took := time.Since(start); took != 0 {
			t.Errorf("400 items waited %v", took)
		}
		addAll(t, b, "400")
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("item 401 waited %v, want 10s", took)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("Close() = %v", err)
		}
		if !slices.Equal(numbered("", 401), stored(s)) {
			t.Errorf("stored %d items, want 401 in order", len(stored(s)))
		}
		for i := 1; i < 40; i++ {
			if pause := s.Begun()[i].Sub(s.Begun()[i-1]); pause != 250*time.Millisecond {
				t.Errorf("pause %d was %v, want 250ms", i, pause)
			}
		}
	})
}

func TestAddThatGivesUpLeavesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &queentest.Shelf{Before: awayFor(10*time.Second, errAway)}
		b := newBuffer(t, s, queen.BufferConfig{MaxItems: 1, MaxPending: 1})
		addAll(t, b, "1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Add(ctx, item("2", "p")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Add() = %v, want the deadline", err)
		}
		if err := b.Add(ctx, item("3", "p")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Add() with an ended context = %v, want the deadline", err)
		}
		addAll(t, b, "4")
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("Close() = %v", err)
		}
		if diff := cmp.Diff([]string{"1", "4"}, stored(s)); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
	})
}

// A large item at the head that gives up lets the small ones behind it in.
func TestAddThatGivesUpLetsOthersIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		s := &queentest.Shelf{Before: held(leave)}
		b := newBuffer(t, s, queen.BufferConfig{Linger: -1, MaxPendingBytes: 10})
		addAll(t, b, "1")
		large := item("large", "p")
		large.Payload = []byte(`"0123456789"`)
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error, 1)
		go func() { gaveUp <- b.Add(ctx, large) }()
		synctest.Wait()
		added := make(chan error, 1)
		go func() { added <- b.Add(t.Context(), item("2", "p")) }()
		synctest.Wait()
		select {
		case err := <-added:
			t.Fatalf("a later item passed a blocked one: %v", err)
		default:
		}
		cancel()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("Add() = %v, want the cancellation", err)
		}
		if err := <-added; err != nil {
			t.Errorf("Add() = %v, want it in", err)
		}
		close(leave)
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"1", "2"}, stored(s)); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
	})
}

func TestAddRefusesWhatQueenWouldLose(t *testing.T) {
	t.Parallel()
	s := &queentest.Shelf{}
	b := newBuffer(t, s, queen.BufferConfig{Linger: -1})
	for name, spoil := range map[string]func(*queen.Item){
		"another queue":     func(it *queen.Item) { it.Queue = "other" },
		"no partition":      func(it *queen.Item) { it.Partition = "" },
		"no id":             func(it *queen.Item) { it.TransactionID = "" },
		"control character": func(it *queen.Item) { it.TransactionID = "a\nb" },
		"no payload":        func(it *queen.Item) { it.Payload = nil },
	} {
		it := item("1", "p")
		spoil(&it)
		if err := b.Add(t.Context(), it); err == nil {
			t.Errorf("%s: Add() took it", name)
		}
	}
	if err := b.Close(t.Context()); err != nil || len(sizes(s)) != 0 {
		t.Errorf("Close() = %v after %d pushes", err, len(sizes(s)))
	}
}

func TestAnAddedItemThatQueenRefusesIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var refused []string
		s := &queentest.Shelf{Before: func(_ context.Context, items []queen.Item) error {
			if slices.Contains(idsOf(items), "poison") {
				return &queen.StatusError{Status: 400}
			}
			return nil
		}}
		b := newBuffer(t, s, queen.BufferConfig{Observer: queen.BufferObserver{
			Refused: func(it *queen.Item, _ error) { refused = append(refused, it.TransactionID) }}})
		addAll(t, b, "1", "poison", "2")
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("Close() = %v: nothing is left", err)
		}
		if diff := cmp.Diff([]string{"poison"}, refused); diff != "" {
			t.Errorf("refused (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"1", "2"}, stored(s)); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
	})
}

func TestFlushWaitsForWhatCameBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &queentest.Shelf{Before: func(context.Context, []queen.Item) error { time.Sleep(100 * time.Millisecond); return nil }}
		b := newBuffer(t, s, queen.BufferConfig{})
		if err := b.Flush(t.Context()); err != nil {
			t.Errorf("Flush() of nothing = %v", err)
		}
		addAll(t, b, numbered("", 150)...)
		start := time.Now()
		var later sync.WaitGroup
		later.Go(func() { // a flush does not wait for what comes after it
			for i := range 200 {
				time.Sleep(10 * time.Millisecond)
				if err := b.Add(t.Context(), item(fmt.Sprint("later", i), "p")); err != nil {
					t.Error(err)
				}
			}
		})
		if err := b.Flush(t.Context()); err != nil {
			t.Errorf("Flush() = %v", err)
		}
		if took := time.Since(start); took != 200*time.Millisecond {
			t.Errorf("flushed after %v, want 200ms: two pushes, no linger", took)
		}
		if got := stored(s); len(got) < 150 || !slices.Equal(numbered("", 150), got[:150]) {
			t.Errorf("stored %d items", len(got))
		}
		later.Wait()
	})
}

func TestFlushDoesNotWaitForWhatExpired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &queentest.Shelf{Before: awayFor(time.Hour, errAway)}
		c := crowd{Buffer: newBuffer(t, s, queen.BufferConfig{Linger: -1, RetryEvery: time.Minute, MaxPending: 2})}
		for i := range 4 { // two wait, two are blocked
			c.submit(fmt.Sprint(i), "p")
		}
		start := time.Now()
		if err := c.Flush(t.Context()); err != nil || time.Since(start) != 5*time.Second {
			t.Errorf("Flush() = %v after %v, want nil after 5s", err, time.Since(start))
		}
		c.check(t, queen.BundleExpired)
	})
}

func TestFlushGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &queentest.Shelf{Before: awayFor(time.Minute, errAway)}
		b := newBuffer(t, s, queen.BufferConfig{})
		addAll(t, b, "1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush() = %v, want the deadline", err)
		}
		if err := b.Flush(t.Context()); err != nil || !slices.Equal(stored(s), []string{"1"}) {
			t.Errorf("Flush() = %v, stored %v", err, stored(s))
		}
	})
}

func TestCloseFlushesForThirtySecondsAndSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &queentest.Shelf{Before: awayFor(time.Hour, errAway)}
		b := newBuffer(t, s, queen.BufferConfig{MaxItems: 2, MaxPending: 3})
		addAll(t, b, "1", "2", "3")
		blocked := make(chan error, 1)
		go func() { blocked <- b.Add(t.Context(), item("4", "p")) }()
		synctest.Wait()
		start := time.Now()
		time.AfterFunc(time.Second, func() { // it takes nothing new while it flushes
			if err := b.Add(t.Context(), item("late", "p")); !errors.Is(err, queen.ErrBufferClosed) {
				t.Errorf("Add() during Close() = %v, want ErrBufferClosed", err)
			}
		})
		err := b.Close(t.Context())
		var unstored *queen.UnstoredError
		if !errors.As(err, &unstored) || unstored.Items != 4 || unstored.Queue != "q" {
			t.Errorf("Close() = %v, want 4 items left", err)
		}
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("Close() took %v, want 30s", took)
		}
		if err := <-blocked; !errors.Is(err, queen.ErrBufferClosed) {
			t.Errorf("the blocked Add() = %v, want ErrBufferClosed", err)
		}
		if err := b.Add(t.Context(), item("5", "p")); !errors.Is(err, queen.ErrBufferClosed) {
			t.Errorf("Add() = %v, want ErrBufferClosed", err)
		}
		if r := b.Submit(bundle(item("6", "p")), time.Time{}); r != queen.BundleStopped {
			t.Errorf("Submit() = %d, want stopped", r)
		}
		if err := errors.Join(b.Close(t.Context()), b.Flush(t.Context())); err != nil {
			t.Errorf("again: %v, want nothing left to do", err)
		}
		pushes := len(sizes(s))
		time.Sleep(time.Hour)
		if n := len(sizes(s)); n != pushes {
			t.Errorf("%d pushes after Close", n-pushes)
		}
	})
}

func TestCloseCutsOffAHangingPush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &queentest.Shelf{Before: held(nil)}
		c := crowd{Buffer: atOnce(t, s, queen.BufferConfig{})}
		c.submit("1", "p")
		c.submit("2", "p")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		start := time.Now()
		var unstored *queen.UnstoredError
		if err := c.Close(ended); !errors.As(err, &unstored) || unstored.Items != 2 || time.Since(start) != 0 {
			t.Errorf("Close() = %v after %v, want 2 items left at once", err, time.Since(start))
		}
		c.check(t, queen.BundleStopped)
	})
}

// Adders, flushers and a closer side by side, over the network and a client.
func TestABufferOverAClient(t *testing.T) {
	t.Parallel()
	c, b := answeringPushes(t)
	buffer, err := queen.NewBuffer(queen.BufferConfig{Pusher: c, Queue: "q", MaxItems: 10, Linger: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var adders sync.WaitGroup
	for n := range 8 {
		adders.Go(func() {
			for _, id := range numbered(fmt.Sprint("n", n, "-"), 100) {
				if err := buffer.Add(t.Context(), item(id, fmt.Sprint("p", n%3))); err != nil {
					t.Error(err)
				}
			}
			if err := buffer.Flush(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	adders.Wait()
	if err := buffer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	last := map[string]string{}
	total := 0
	for _, it := range b.pushed(t) {
		total++
		adder := it.TransactionID[:2]
		if it.TransactionID <= last[adder] {
			t.Errorf("%s came after %s", it.TransactionID, last[adder])
		}
		last[adder] = it.TransactionID
	}
	if total != 800 {
		t.Errorf("%d items pushed, want 800", total)
	}
}
