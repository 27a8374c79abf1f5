package main

import (
	"context"
	"sync"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// pushes passes pushes on and knows whether one is under way. The ingress
// answers at the deadline, while the push that it cut off may still be on its
// way out: a process that is frozen in between wakes up with a dead connection.
// Safe for concurrent use.
type pushes struct {
	to queen.Pusher

	mu       sync.Mutex
	underWay int
	idle     chan struct{} // of those who wait; nil: nobody does
}

// Push implements queen.Pusher.
func (p *pushes) Push(ctx context.Context, items []queen.Item) ([]queen.PushVerdict, error) {
	p.add(1)
	defer p.add(-1)
	return p.to.Push(ctx, items)
}

func (p *pushes) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.underWay += n
	if p.underWay == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

// wait returns when no push is under way, or ctx ends.
func (p *pushes) wait(ctx context.Context) {
	p.mu.Lock()
	if p.underWay == 0 {
		p.mu.Unlock()
		return
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	p.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}
