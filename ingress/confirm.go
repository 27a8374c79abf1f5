package ingress

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"code.dny.dev/ssrf"
)

// confirmer calls the URLs by which subscriptions are confirmed, in the
// background. The hosts were checked by package signing; a name that leads
// into the network we stand in is refused here.
type confirmer struct {
	client  *http.Client
	logger  *slog.Logger
	metrics *metrics
	running sync.WaitGroup
	life    context.Context
	end     context.CancelFunc

	mu       sync.Mutex
	underWay int           // reserved or running
	idle     chan struct{} // of those who settle; nil: nobody does
}

const (
	confirmTime = 10 * time.Second
	// confirmAtOnce bounds the calls under way: whoever may sign for a topic
	// must not make us call for ever.
	confirmAtOnce = 8
	confirmRead   = 64 << 10
)

// newConfirmer uses transport, or connects to public addresses only, past any
// proxy.
func newConfirmer(transport http.RoundTripper, logger *slog.Logger, m *metrics) *confirmer {
	if transport == nil {
		guard := ssrf.New(ssrf.WithPorts(443))
		dialer := &net.Dialer{Timeout: confirmTime / 2, Control: guard.Safe}
		transport = &http.Transport{
			DialContext: dialer.DialContext, DisableKeepAlives: true,
			TLSHandshakeTimeout: confirmTime / 2, MaxResponseHeaderBytes: confirmRead,
		}
	}
	c := &confirmer{logger: logger, metrics: m}
	c.client = &http.Client{
		Transport: transport, Timeout: confirmTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// reserve takes the right to one start, unless too many calls are under way.
func (c *confirmer) reserve() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.underWay == confirmAtOnce {
		return false
	}
	c.underWay++
	return true
}

func (c *confirmer) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.underWay--; c.underWay == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// start calls address once.
func (c *confirmer) start(source, address string) {
	c.running.Go(func() {
		defer c.release()
		level, result := slog.LevelInfo, "confirmed"
		err := c.call(address)
		if err != nil {
			level, result = slog.LevelWarn, "failed"
		}
		c.metrics.confirmations.WithLabelValues(source, result).Inc()
		c.logger.LogAttrs(c.life, level, msgConfirmed, slog.String(keySource, source),
			slog.String(keyResult, result), slog.Any(keyError, err))
	})
}

// call's error holds no query: that is where the token stands.
func (c *confirmer) call(address string) error {
	r, err := http.NewRequestWithContext(c.life, http.MethodGet, address, nil)
	if err != nil || r.URL.Scheme != "https" {
		return fmt.Errorf("confirm a subscription: no https URL")
	}
	res, err := c.client.Do(r)
	if err != nil {
		return fmt.Errorf("confirm a subscription at %s: %w", r.URL.Host, withoutURL(err))
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, confirmRead))
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("confirm a subscription at %s: status %d", r.URL.Host, res.StatusCode)
	}
	return nil
}

// withoutURL is the cause of an error of http.Client, whose text has the URL.
func withoutURL(err error) error {
	if e, ok := err.(*url.Error); ok { //nolint:errorlint // Client.Do documents exactly this type
		return e.Err
	}
	return err
}

// settle waits until no call is under way, or ctx ends.
func (c *confirmer) settle(ctx context.Context) error {
	c.mu.Lock()
	if c.underWay == 0 {
		c.mu.Unlock()
		return nil
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close waits for the calls under way until ctx ends, then cuts them off.
func (c *confirmer) close(ctx context.Context) {
	stop := context.AfterFunc(ctx, c.end)
	defer stop()
	c.running.Wait()
	c.end()
}
