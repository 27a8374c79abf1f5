package dispatch

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/queenbridge/queenbridge/bridge"
)

// window is Queen's counter of a shared budget: incr with max and ttl.
type window struct {
	total int64
	ends  time.Time
}

func (w *window) incr(n int64, b *sharedBudget, now time.Time) (total int64, applied bool) {
	if !now.Before(w.ends) {
		w.total = 0
	}
	if w.total+n > b.most {
		return w.total, false
	}
	if w.total == 0 {
		w.ends = now.Add(b.window)
	}
	w.total += n
	return w.total, true
}

// However many processes share a budget, and however they ask, they make no
// more calls than its windows hold; and none waits for ever.
func TestProcessesKeepOneSharedBudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rate := bridge.TargetRate{PerSecond: rapid.Float64Range(0.05, 200).Draw(t, "per_second"), Burst: rapid.IntRange(0, 30).Draw(t, "burst")}
		processes := make([]*sharedBudget, rapid.IntRange(1, 4).Draw(t, "processes"))
		for i := range processes {
			processes[i] = newSharedBudget("fn", rate, make(chan struct{}, 1))
		}
		var queen window
		now, calls, most := flowStart, int64(0), processes[0].most
		for range 400 {
			now = now.Add(time.Duration(rapid.IntRange(1, 200).Draw(t, "ms")) * time.Millisecond)
			b := processes[rapid.IntRange(0, len(processes)-1).Draw(t, "process")]
			for range rapid.IntRange(0, 20).Draw(t, "events") {
				if b.available(now) == 0 {
					b.want(now)
					break
				}
				b.take(now)
				calls++
			}
			if b.hungry && !b.due.After(now) {
				asked := b.block
				if total, applied := queen.incr(asked, b, now); applied {
					b.granted(asked, total, now)
				} else {
					b.denied(total, now, half)
				}
			}
			windows := int64(now.Sub(flowStart)/processes[0].window) + 1
			if calls > windows*most {
				t.Fatalf("%d calls in %d windows of %d", calls, windows, most)
			}
			if b.block < 1 || b.block > most {
				t.Fatalf("block of %d, a window holds %d", b.block, most)
			}
			if b.due.Sub(now) > 2*processes[0].window+time.Second {
				t.Fatalf("asks again in %s, a window lasts %s", b.due.Sub(now), b.window)
			}
		}
	})
}

func TestSharedBudgetWindow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rate   bridge.TargetRate
		most   int64
		window time.Duration
	}{
		{bridge.TargetRate{PerSecond: 10}, 10, time.Second},
		{bridge.TargetRate{PerSecond: 10, Burst: 100}, 100, 10 * time.Second},
		{bridge.TargetRate{PerSecond: 100, Burst: 5}, 100, time.Second},
		{bridge.TargetRate{PerSecond: 2.5}, 5, 2 * time.Second},
		{bridge.TargetRate{PerSecond: 0.1, Burst: 1}, 1, 10 * time.Second},
		{bridge.TargetRate{PerSecond: 0.001}, 1, 1000 * time.Second},
	} {
		b := newSharedBudget("fn", tt.rate, make(chan struct{}, 1))
		if b.most != tt.most || b.window != tt.window {
			t.Errorf("%+v: %d in %s, want %d in %s", tt.rate, b.most, b.window, tt.most, tt.window)
		}
	}
}

func TestSharedBudgetKeepsItsPartWithoutQueen(t *testing.T) {
	t.Parallel()
	b := newSharedBudget("fn", bridge.TargetRate{PerSecond: 100}, make(chan struct{}, 1))
	now := flowStart
	for range 100 { // half of each window
		b.granted(50, 50, now)
		b.granted(1, 99, now)
		now = now.Add(time.Second)
	}
	if b.failed(now, time.Second) {
		t.Error("one failure ended the sharing")
	}
	if !b.failed(now.Add(2*time.Second), time.Second) || b.own == nil {
		t.Fatal("it waits for Queen for ever")
	}
	if r := b.own.perSecond; r < 40 || r > 110 {
		t.Errorf("goes on with %v a second, want about its part of 100", r)
	}
	if b.failed(now.Add(3*time.Second), time.Second) {
		t.Error("told twice")
	}
	b.granted(10, 10, now.Add(time.Minute))
	if b.own != nil {
		t.Error("goes on alone although Queen is back")
	}
}

func TestUnusedSharedTokensExpire(t *testing.T) {
	t.Parallel()
	b := newSharedBudget("fn", bridge.TargetRate{PerSecond: 10}, make(chan struct{}, 1))
	b.granted(5, 5, flowStart)
	if got := b.available(flowStart.Add(time.Second)); got != 5 {
		t.Errorf("%d tokens within the window, want 5", got)
	}
	if got := b.available(flowStart.Add(1500 * time.Millisecond)); got != 0 {
		t.Errorf("%d tokens of a window that is over", got)
	}
}
