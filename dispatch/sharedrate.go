package dispatch

import (
	"math"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// Bounds of a shared budget.
const (
	// leastPart is the part of the budget that a process allows itself at least
	// while Queen does not hand it out.
	leastPart = 0.1
	// keepTokens is how long tokens that were fetched and not used are good.
	keepTokens = 2 * time.Second
	// patientFor is how long Queen may fail to hand out tokens before a process
	// goes on with its own part.
	patientFor = time.Second
)

// sharedBudget is a rate limit that all processes keep together: a counter in
// Queen's KV that may grow to most and vanishes a window after its first
// growth. A process takes tokens in blocks, because Queen allows 100 KV writes
// a second per broker (measured 1.3.0). It asks only for events it has.
//
// While Queen hands out none it goes on with the part of the budget that was
// its own lately: never without limit, and never not at all.
type sharedBudget struct {
	target    string
	perSecond float64
	most      int64
	window    time.Duration
	wake      chan<- struct{} // tells the keeper

	tokens int64
	good   time.Time // until then
	hungry bool      // an event waits for tokens, or soon will
	block  int64     // how many to ask for
	due    time.Time // not to be asked for before
	ends   time.Time // of the window, where this process began it

	mine, total int64 // of the window
	part        float64

	troubled time.Time // Queen has failed to answer since
	own      *bucket   // used meanwhile; nil: the shared budget is in use
}

func newSharedBudget(target string, r bridge.TargetRate, wake chan<- struct{}) *sharedBudget {
	burst := newBucket(r).burst
	// A time to live is in whole seconds; a window holds at least one call.
	seconds := min(math.Ceil(max(burst, 1)/r.PerSecond), (30 * 24 * time.Hour).Seconds())
	b := &sharedBudget{
		target: target, perSecond: r.PerSecond, wake: wake, part: leastPart,
		most: int64(max(1, r.PerSecond*seconds+tokenDust)), window: time.Duration(seconds) * time.Second,
	}
	b.block = b.firstBlock()
	return b
}

// firstBlock is what the rate allows between two calls of the keeper.
func (b *sharedBudget) firstBlock() int64 {
	return max(1, min(b.most, int64(b.perSecond*keeperPace.Seconds())))
}

func (b *sharedBudget) available(now time.Time) int {
	if b.own != nil {
		return b.own.available(now)
	}
	if now.After(b.good) {
		b.tokens = 0
	}
	return int(b.tokens)
}

func (b *sharedBudget) take(now time.Time) {
	if b.own != nil {
		b.own.take(now)
		return
	}
	if b.tokens = max(0, b.tokens-1); b.tokens <= b.block/4 && b.block > 1 {
		b.want(now)
	}
}

func (b *sharedBudget) giveBack(now time.Time) {
	if b.own != nil {
		b.own.giveBack(now)
		return
	}
	b.tokens++
}

// want asks the keeper for tokens, which tells when there are some: 0.
func (b *sharedBudget) want(now time.Time) time.Duration {
	if !b.hungry {
		b.hungry = true
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
	if b.own != nil {
		return b.own.want(now)
	}
	return 0
}

func (b *sharedBudget) roomIn(now time.Time, n int) time.Duration {
	if b.own != nil {
		return b.own.roomIn(now, n)
	}
	return max(b.due.Sub(now), keeperPace)
}

// soon counts a block that may be had, unless the window is used up.
func (b *sharedBudget) soon(now time.Time, d time.Duration) int {
	if b.own != nil {
		return b.own.soon(now, d)
	}
	n := b.available(now)
	if !now.Before(b.due) {
		n += int(b.block)
	}
	return n
}

// granted takes n tokens; total is what all processes have taken of the window.
func (b *sharedBudget) granted(n, total int64, asked time.Time) {
	if total == n {
		b.ends = asked.Add(b.window)
	}
	if total == n || total < b.total {
		b.mine = 0
	}
	b.mine, b.total = b.mine+n, total
	b.part += (max(leastPart, float64(b.mine)/float64(total)) - b.part) / 8
	b.tokens, b.good = b.tokens+n, asked.Add(min(b.window, keepTokens))
	b.hungry, b.troubled, b.own = false, time.Time{}, nil
	b.block = min(2*b.block, max(1, b.most/2))
}

// denied learns that the window does not hold a block any more: the rest of it
// is asked for, or the next window. Who began the window knows when it ends;
// the others look again now and then.
func (b *sharedBudget) denied(total int64, now time.Time, random func() float64) {
	b.troubled, b.own = time.Time{}, nil
	if left := b.most - total; left > 0 && left < b.block {
		b.block, b.due = left, now
		return
	}
	wait := max(keeperPace, b.window/8)
	if b.ends.After(now) {
		wait = min(wait, b.ends.Sub(now))
	}
	b.due = now.Add(time.Duration(float64(wait) * (1 + 0.1*random())))
	b.block = b.firstBlock()
}

// failed learns that Queen did not answer; changed says that the process goes
// on with its own part from now on.
func (b *sharedBudget) failed(now time.Time, pause time.Duration) (changed bool) {
	if b.troubled.IsZero() {
		b.troubled = now
	}
	b.due = now.Add(pause)
	if b.own != nil || now.Sub(b.troubled) < patientFor {
		return false
	}
	rate := b.perSecond * b.part
	b.own = &bucket{perSecond: rate, burst: max(1, rate), at: now}
	return true
}
