package dispatch

import (
	"sync"
	"time"
)

// goroutines counts the goroutines of a dispatcher. Unlike a sync.WaitGroup it may
// grow from zero while somebody waits (renewals begin by a timer), and it can
// be closed.
type goroutines struct {
	mu      sync.Mutex
	running int
	closed  bool
	idle    chan struct{} // closed when nothing runs; nil while nobody waits
}

// spawn runs f in a goroutine, unless the group is closed.
func (g *goroutines) spawn(f func()) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	g.running++
	g.mu.Unlock()
	go func() {
		defer g.ended()
		f()
	}()
}

func (g *goroutines) ended() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if g.running == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// whenIdle is closed when nothing runs.
func (g *goroutines) whenIdle() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running == 0 {
		now := make(chan struct{})
		close(now)
		return now
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	return g.idle
}

// idleBy waits until nothing runs, at most until deadline.
func (g *goroutines) idleBy(deadline time.Time) bool {
	t := time.NewTimer(time.Until(deadline))
	defer t.Stop()
	select {
	case <-g.whenIdle():
		return true
	case <-t.C:
		return false
	}
}

// close lets no goroutine begin any more and waits for those that run.
func (g *goroutines) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	<-g.whenIdle()
}
