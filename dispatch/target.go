package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// target is a bridge.Target at work. Its Sender may be replaced while routes
// use it: a call keeps the one it began with.
type target struct {
	name  string
	share *share

	mu    sync.Mutex
	now   *sending
	users int // the configuration and the routes that use it
}

// sending is one version of a target. It is closed once it was replaced and
// its last call has ended.
type sending struct {
	cfg     bridge.Target
	sender  Sender
	timeout time.Duration
	calls   int
	old     bool
}

func newSending(cfg bridge.Target, s Sender) *sending {
	return &sending{cfg: cfg, sender: s, timeout: attemptTimeout(cfg)}
}

// config is the target as it is configured now.
func (t *target) config() bridge.Target {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now.cfg
}

// send makes one call.
func (t *target) send(ctx context.Context, req *bridge.Request) bridge.Response {
	t.mu.Lock()
	v := t.now
	v.calls++
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		v.calls--
		last := v.old && v.calls == 0
		t.mu.Unlock()
		if last {
			v.close()
		}
	}()
	return v.sender.Send(ctx, req)
}

// replace lets calls that begin from now on use another Sender.
func (t *target) replace(cfg bridge.Target, sender Sender) {
	t.mu.Lock()
	before := t.now
	t.now = newSending(cfg, sender)
	t.mu.Unlock()
	t.retire(before)
}

// retire closes a version after its last call.
func (t *target) retire(v *sending) {
	t.mu.Lock()
	v.old = true
	last := v.calls == 0
	t.mu.Unlock()
	if last {
		v.close()
	}
}

// use adds n users. A target without users is never called again, and its
// Sender is closed.
func (t *target) use(n int) {
	t.mu.Lock()
	t.users += n
	v, unused := t.now, t.users == 0
	t.mu.Unlock()
	if unused {
		t.retire(v)
	}
}

func (v *sending) close() {
	if c, ok := v.sender.(interface{ Close() }); ok {
		c.Close()
	}
}

// timeout bounds one call.
func (t *target) timeout() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now.timeout
}

// sameShape says that routes need not notice the change of a target: what they
// make of an event for it is the same.
func sameShape(a, b bridge.Target) bool {
	if (a.Lambda == nil) != (b.Lambda == nil) {
		return false
	}
	if a.Lambda == nil {
		return true
	}
	x, y := a.Lambda, b.Lambda
	return x.Payload == y.Payload && x.Invoke == y.Invoke && x.Function == y.Function && x.Region == y.Region
}

// concurrencyOf is the ceiling of calls at once to one of n targets. One of
// several gets at most half the pool: a hanging function must not take the
// slots of the others.
func concurrencyOf(cfg bridge.Target, pool, n int) int {
	limit := cfg.Concurrency
	if limit <= 0 {
		limit = defaultConcurrency
	}
	if n > 1 {
		return min(limit, max(1, pool/2))
	}
	return min(limit, pool)
}
