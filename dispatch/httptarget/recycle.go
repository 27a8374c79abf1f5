package httptarget

import (
	"crypto/tls"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxAge is how long connections are used at most (dispatch.md §5,
	// HTTP/2): a kept-alive one would stay with a pod that left the name.
	maxAge = 5 * time.Minute
	// filesEvery is how often the TLS files of a target are looked at.
	filesEvery = 10 * time.Second
)

// connections hands out a target's transport. After maxAge, and when a TLS
// file holds something else, the next call gets a new one: its connections
// resolve the name again and use the new files. Those of the old one end with
// the calls on them.
type connections struct {
	network     *network
	trust       *trust
	concurrency int
	now         func() time.Time
	log         *slog.Logger

	current atomic.Pointer[generation]
	mu      sync.Mutex // held by whoever looks for a new generation; guards previous
	// previous is kept to be closed with the current one.
	previous *http.Transport
}

// generation is one transport and what it was made of.
type generation struct {
	transport  *http.Transport
	material   material
	config     *tls.Config
	look, ends time.Time
}

// newConnections reads the TLS files, and dials nobody.
func newConnections(c *connections) (*connections, error) {
	m, config, err := c.trust.load()
	if err != nil {
		return nil, err
	}
	c.current.Store(c.generation(m, config))
	return c, nil
}

// generation makes a transport. Its age is spread over a fifth, so that not
// all targets and processes connect anew at the same time.
func (c *connections) generation(m material, config *tls.Config) *generation {
	now := c.now()
	g := &generation{
		transport: c.network.transport(config, c.trust.others(m), c.concurrency), material: m, config: config,
		ends: now.Add(maxAge - rand.N(maxAge/5)), //nolint:gosec // no secret
	}
	g.look = c.nextLook(now, g.ends)
	return g
}

// nextLook is when files or age have to be looked at again.
func (c *connections) nextLook(now, ends time.Time) time.Time {
	if soon := now.Add(filesEvery); c.trust.hasFiles() && soon.Before(ends) {
		return soon
	}
	return ends
}

// transport is the one for the next call.
func (c *connections) transport() *http.Transport {
	g := c.current.Load()
	if c.now().Before(g.look) || !c.mu.TryLock() {
		return g.transport
	}
	defer c.mu.Unlock()
	return c.renew().transport
}

// renew looks whether a new generation is due; c.mu is held.
func (c *connections) renew() *generation {
	g, now := c.current.Load(), c.now()
	if now.Before(g.look) {
		return g // another call has looked in between
	}
	m, config, err := c.trust.load()
	if err != nil { // a file may be half written: the next look may find it whole
		c.log.Warn("TLS files of a target not read again: the last ones stay", "error", err)
		m, config = g.material, g.config
	}
	if now.Before(g.ends) && m.equal(g.material) {
		return c.keep(g, now)
	}
	next := c.generation(m, config)
	c.previous = g.transport
	c.current.Store(next)
	c.previous.CloseIdleConnections()
	return next
}

// keep stays with a generation until the next look.
func (c *connections) keep(g *generation, now time.Time) *generation {
	kept := *g
	kept.look = c.nextLook(now, g.ends)
	c.current.Store(&kept)
	return &kept
}

// close drops idle connections.
func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current.Load().transport.CloseIdleConnections()
	if c.previous != nil {
		c.previous.CloseIdleConnections()
	}
}
