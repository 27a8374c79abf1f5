package dispatch

import (
	"log/slog"
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
	log     *slog.Logger
}

// spawn runs f in a goroutine, unless the group is closed: false.
func (g *goroutines) spawn(f func()) bool {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return false
	}
	g.running++
	g.mu.Unlock()
	go func() {
		defer g.ended()
		f()
	}()
	return true
}

// ended notes the end of a goroutine. A panic of our own never ends the
// process: what it left unsettled comes again when its lease runs out.
func (g *goroutines) ended() {
	if p := recover(); p != nil {
		g.log.Error("panic in the dispatcher", slog.Any(keyError, p), stack())
	}
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
