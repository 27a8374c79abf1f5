package queen_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
)

// awayFor fails every push of the first d.
func awayFor(d time.Duration, err error) func(context.Context, []queen.Item) error {
	start := time.Now()
	return func(context.Context, []queen.Item) error {
		if time.Since(start) < d {
			return err
		}
		return nil
	}
}

func TestAFailedBatchIsRetriedInOrderWithBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &queentest.Shelf{Before: awayFor(time.Second, errAway)}
		var log bytes.Buffer
		c := crowd{Buffer: atOnce(t, s, queen.BufferConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})}
		for _, id := range numbered("", 5) {
			c.submit(id, "p")
			time.Sleep(10 * time.Millisecond)
		}
		c.check(t, queen.BundleStored)
		if diff := cmp.Diff(numbered("", 5), stored(s)); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
		if n := len(sizes(s)); n < 3 || n > 7 {
			t.Errorf("%d pushes in a second of outage, want a few: backoff from 250 ms", n)
		}
		if text := log.String(); strings.Count(text, "push failed") != 1 || strings.Count(text, "pushes succeed again") != 1 {
			t.Errorf("log does not tell the outage once:\n%s", text)
		}
	})
}

func TestThePauseAfterAFailureIsConstantUnlessItMayDouble(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]queen.BufferConfig{"constant": {}, "doubled": {RetryMax: time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &queentest.Shelf{Before: awayFor(10*time.Second, errAway)}
				cfg.Linger = -1
				newBuffer(t, s, cfg).Submit(bundle(item("1", "p")), time.Time{})
				pauses := map[time.Duration]int{}
				for i := 1; i < len(s.Begun()); i++ {
					pauses[s.Begun()[i].Sub(s.Begun()[i-1])]++
				}
				if constant := pauses[250*time.Millisecond] == 40 && len(pauses) == 1; constant != (name == "constant") {
					t.Errorf("pauses %v", pauses)
				}
				if name == "doubled" && (len(s.Begun()) < 8 || len(s.Begun()) > 25) {
					t.Errorf("%d pushes in 10 s, want pauses up to 1 s ± 50 %%", len(s.Begun()))
				}
			})
		})
	}
}

func TestRetryAfterIsWaitedOutUpToAMinute(t *testing.T) {
	t.Parallel()
	for asked, want := range map[time.Duration]time.Duration{3 * time.Second: 3 * time.Second, time.Hour: time.Minute} {
		t.Run(asked.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &queentest.Shelf{Before: awayFor(time.Second, &queen.StatusError{Status: 503, RetryAfter: asked})}
				start := time.Now()
				atOnce(t, s, queen.BufferConfig{}).Submit(bundle(item("1", "p")), time.Time{})
				if took := time.Since(start); took != want {
					t.Errorf("stored after %v, want %v", took, want)
				}
			})
		})
	}
}

func TestAHangingPushDoesNotHoldBundlesPastTheirDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &queentest.Shelf{Before: held(nil)}
		c := crowd{Buffer: atOnce(t, s, queen.BufferConfig{})}
		start := time.Now()
		for i := range 20 {
			c.submit(fmt.Sprint(i), "p")
			time.Sleep(100 * time.Millisecond)
		}
		c.check(t, queen.BundleExpired)
		if took := time.Since(start); took > 7*time.Second {
			t.Errorf("the last one took %v", took)
		}
		time.Sleep(time.Minute) // what was given up does not come back
		n := len(sizes(s))
		time.Sleep(time.Hour)
		if m := len(sizes(s)); m != n {
			t.Errorf("%d pushes for nobody", m-n)
		}
	})
}

// One bundle without a deadline keeps a push alive that others give up.
func TestABundleWithoutDeadlineIsNotCutOffByOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first := true
		s := &queentest.Shelf{}
		s.Before = func(ctx context.Context, _ []queen.Item) error {
			if first {
				first = false
				time.Sleep(time.Second)
				return nil
			}
			select {
			case <-time.After(20 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		c := crowd{Buffer: atOnce(t, s, queen.BufferConfig{})}
		c.submit("0", "p0") // holds the others together
		short := c.submit("1", "p1")
		var long queen.BundleResult
		c.wg.Go(func() { long = c.Submit(bundle(item("2", "p2")), time.Time{}) })
		c.wg.Wait()
		if *short != queen.BundleExpired || long != queen.BundleStored {
			t.Errorf("results %d and %d, want expired and stored", *short, long)
		}
		if diff := cmp.Diff([]int{1, 2}, sizes(s)); diff != "" {
			t.Errorf("batch sizes (-want +got):\n%s", diff)
		}
	})
}

// Queen stored the items, the answer got lost; the same ids are pushed again.
func TestLostReplyIsADuplicateNotALoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lost := false
		s := &queentest.Shelf{After: func([]queen.Item) error {
			if !lost {
				lost = true
				return errAway
			}
			return nil
		}}
		g := bundle(item("1", "p"))
		if r := atOnce(t, s, queen.BufferConfig{}).Submit(g, time.Time{}); r != queen.BundleStored || g.Status(0) != queen.PushDuplicate {
			t.Errorf("result %d, %s; want stored, duplicate", r, g.Status(0))
		}
		if n := len(stored(s)); n != 1 {
			t.Errorf("%d items stored, want 1", n)
		}
	})
}

func TestAFailedItemIsRetriedAloneAndItsPartitionKeepsItsOrder(t *testing.T) {
	t.Parallel()
	for _, word := range []queen.PushStatus{queen.PushFailed, queen.PushError, "a word of later"} {
		t.Run(string(word), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				s := &queentest.Shelf{Verdict: func(it queen.Item) queen.PushStatus {
					if it.Partition == "bad" && time.Since(start) < time.Second {
						return word
					}
					return ""
				}}
				c := crowd{Buffer: atOnce(t, s, queen.BufferConfig{})}
				c.submit("1", "bad")
				c.submit("2", "bad")
				if good := c.submit("3", "good"); *good != queen.BundleStored || time.Since(start) != 0 {
					t.Errorf("another partition: result %d after %v, want stored at once", *good, time.Since(start))
				}
				c.check(t, queen.BundleStored)
				if diff := cmp.Diff([]string{"3", "1", "2"}, stored(s)); diff != "" {
					t.Errorf("stored (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestAnItemQueenNeverTakesDoesNotFailItsNeighbours(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 413} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				leave := make(chan struct{})
				block := held(leave)
				s := &queentest.Shelf{Before: func(ctx context.Context, items []queen.Item) error {
					if err := block(ctx, items); err != nil {
						return err
					}
					if slices.Contains(idsOf(items), "poison") {
						return &queen.StatusError{Method: "POST", Path: "/api/v1/push", Status: status, Text: "bad body"}
					}
					return nil
				}}
				c := crowd{Buffer: atOnce(t, s, queen.BufferConfig{})}
				c.submit("", "p0")
				var poison *queen.BundleResult
				for i, id := range numbered("", 20) {
					if i == 7 {
						poison = c.submit("poison", "p1")
						c.results = c.results[:len(c.results)-1]
					}
					c.submit(id, "p1")
				}
				start := time.Now()
				close(leave)
				c.check(t, queen.BundleStored)
				if *poison != queen.BundleRefused || time.Since(start) != 0 {
					t.Errorf("poison: result %d after %v, want refused at once", *poison, time.Since(start))
				}
				if got := stored(s); !slices.IsSorted(got) || len(got) != 21 {
					t.Errorf("stored %v, want order of arrival", got)
				}
			})
		})
	}
}

// The halves of a refused push: what the front half left of a partition is not
// overtaken by the back half.
func TestHalvesKeepTheOrderOfAPartition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		block, left := held(leave), false
		s := &queentest.Shelf{}
		s.Before = func(ctx context.Context, items []queen.Item) error {
			ids := idsOf(items)
			switch {
			case ids[0] == "first":
				return block(ctx, items)
			case slices.Contains(ids, "poison"):
				return &queen.StatusError{Status: 400}
			case ids[0] == "000" && !left:
				left = true
				return errAway
			}
			return nil
		}
		c := crowd{Buffer: atOnce(t, s, queen.BufferConfig{})}
		c.submit("first", "p0")
		for _, id := range numbered("", 3) {
			c.submit(id, "p")
		}
		poison := c.submit("poison", "other")
		c.results = c.results[:len(c.results)-1]
		close(leave)
		c.check(t, queen.BundleStored)
		if *poison != queen.BundleRefused || !left {
			t.Errorf("poison: result %d, want refused", *poison)
		}
		if diff := cmp.Diff([]string{"first", "000", "001", "002"}, stored(s)); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
	})
}

// What the client itself refuses is found the same way.
func TestAnItemTheClientRefusesIsRefusedAlone(t *testing.T) {
	t.Parallel()
	c, b := answering(t, 201, `[{"status":"queued"}]`)
	buffer, err := queen.NewBuffer(queen.BufferConfig{Pusher: c, Queue: "q", Linger: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = buffer.Close(t.Context()) }()
	g := bundle(item("good", "p"), item("bad\n", "p"))
	if r := buffer.Submit(g, time.Time{}); r != queen.BundleRefused || g.Status(0) != queen.PushQueued || g.Status(1) != "refused" {
		t.Errorf("result %d, statuses %q and %q; want the second one refused", r, g.Status(0), g.Status(1))
	}
	if n := len(b.requests()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

func TestSpooledIsToldApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &queentest.Shelf{Verdict: func(it queen.Item) queen.PushStatus {
			if it.Partition == "spool" {
				return queen.PushBuffered
			}
			return ""
		}}
		g := bundle(item("1", "p"), item("2", "spool"))
		if r := atOnce(t, s, queen.BufferConfig{}).Submit(g, time.Time{}); r != queen.BundleSpooled || g.Status(1) != queen.PushBuffered {
			t.Errorf("result %d, %s; want spooled, buffered", r, g.Status(1))
		}
	})
}

// A pusher that panics or answers nonsense has failed, no more.
func TestAPusherGoneWrongIsAFailedPush(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"panic", "a verdict too few"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				b, err := queen.NewBuffer(queen.BufferConfig{Queue: "q", Linger: -1, Logger: slog.New(slog.NewTextHandler(&log, nil)), Pusher: &moody{panics: how == "panic"}})
				if err != nil {
					t.Fatal(err)
				}
				if r := b.Submit(bundle(item("1", "p")), time.Time{}); r != queen.BundleStored {
					t.Errorf("result %d, want stored", r)
				}
				if !strings.Contains(log.String(), "push failed") {
					t.Errorf("log tells nothing:\n%s", log.String())
				}
			})
		})
	}
}

// moody goes wrong the first time.
type moody struct {
	panics bool
	queentest.Shelf
}

func (m *moody) Push(ctx context.Context, items []queen.Item) ([]queen.PushVerdict, error) {
	if len(m.Pushes()) > 0 {
		return m.Shelf.Push(ctx, items)
	}
	_, _ = m.Shelf.Push(ctx, nil)
	if m.panics {
		panic("mood")
	}
	return nil, nil
}
