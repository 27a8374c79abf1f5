package dispatch

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// crowd is routes of one target that all wait for room to pop.
type crowd struct {
	l      *limiter
	share  *share
	claims []*claim
	got    chan int // which routes may pop, one for each event
}

func newCrowd(t *testing.T, routes, slots int) *crowd {
	l := newLimiter(1000, nil)
	c := &crowd{l: l, share: l.newShare(slots, bridge.Target{Name: "fn"}), got: make(chan int, routes*slots)}
	c.share.adaptive.limit, c.share.max = float64(slots), slots
	for range routes {
		c.claims = append(c.claims, l.newClaim(c.share, slots, 1))
	}
	for range slots {
		if _, err := l.acquire(t.Context(), c.claims[0], 0); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *crowd) wait(ctx context.Context) {
	for i, claim := range c.claims {
		go func() {
			n, reserved, err := c.l.awaitRoom(ctx, claim, ask{most: maxBatch, probes: 1})
			if err == nil && reserved {
				for range n {
					c.got <- i
				}
			}
		}()
		synctest.Wait() // they stand in line as they came
	}
}

func (c *crowd) freed(n int) {
	for range n {
		c.l.mu.Lock()
		c.l.free(c.claims[0])
		c.l.mu.Unlock()
	}
	time.Sleep(time.Second)
	synctest.Wait()
}

// A thousand routes that wait for a target pop no more than it can take: were
// each told of every free slot they would all pop for it, and the telling would
// cost more than the calls.
func TestFreeSlotsAreSharedByTheRoutesThatWait(t *testing.T) {
	t.Parallel()
	for _, slots := range []int{1, 4, 40} {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd(t, 100, slots)
				ctx, cancel := context.WithCancel(t.Context())
				c.wait(ctx)
				if len(c.got) != 0 {
					t.Fatalf("%d events may be popped for a full target", len(c.got))
				}
				c.freed(slots)
				if len(c.got) != slots {
					t.Errorf("%d events may be popped for %d free slots", len(c.got), slots)
				}
				share := map[int]int{}
				for len(c.got) > 0 {
					share[<-c.got]++
				}
				for route, n := range share {
					if n > max(1, slots/4) || route >= len(share) {
						t.Errorf("route %d, the %d. in line, got %d of %d slots", route, route+1, n, slots)
					}
				}
				cancel()
				synctest.Wait()
				if n := c.share.lookers.Len() + c.l.looking.Len(); n != 0 {
					t.Errorf("%d still wait", n)
				}
			})
		})
	}
}

// Who waits for the pool is served although another target freed it.
func TestRoomInThePoolReachesOtherTargets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(2, nil)
		a, b := l.newShare(2, bridge.Target{Name: "a"}), l.newShare(2, bridge.Target{Name: "b"})
		a.max, b.max = 2, 2
		ca, cb := l.newClaim(a, 2, 1), l.newClaim(b, 2, 1)
		permits := make([]permit, 2)
		for i := range permits {
			permits[i], _ = l.acquire(t.Context(), ca, 0)
		}
		room, call := make(chan int, 1), make(chan error, 1)
		go func() {
			n, _, _ := l.awaitRoom(t.Context(), cb, ask{most: 8, probes: 1})
			room <- n
		}()
		go func() {
			_, err := l.acquire(t.Context(), cb, 0)
			call <- err
		}()
		synctest.Wait()
		permits[0].release()
		if err := <-call; err != nil {
			t.Fatal(err)
		}
		permits[1].release()
		if n := <-room; n != 1 {
			t.Errorf("room = %d, want 1", n)
		}
	})
}

// What was granted to a feed in the moment it was stopped goes to the next one.
func TestRoomOfAStoppedFeedGoesToTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 2, 1)
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, _, err := c.l.awaitRoom(ctx, c.claims[0], ask{most: 1, probes: 1})
			left <- err
		}()
		synctest.Wait()
		holder := c.claims[0]
		c.claims = c.claims[1:]
		c.wait(t.Context())
		c.l.mu.Lock() // the grant and the stop are both there when the feed wakes up
		c.l.free(holder)
		cancel()
		c.l.mu.Unlock()
		err := <-left
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(c.got); err != nil && n != 1 || err == nil && n != 0 {
			t.Errorf("the stopped feed ended with %v, the next got %d", err, n)
		}
	})
}

// A feed that pops one partition at a time waits for no more than one slot.
func TestFeedThatTakesLittleIsServedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1, 40)
		served := make(chan time.Duration, 1)
		begun := time.Now()
		go func() {
			_, _, _ = c.l.awaitRoom(t.Context(), c.claims[0], ask{most: 1, probes: 1})
			served <- time.Since(begun)
		}()
		synctest.Wait()
		c.freed(1)
		if waited := <-served; waited != 0 {
			t.Errorf("served %v after its slot was free", waited)
		}
	})
}
