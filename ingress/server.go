package ingress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/signing"
)

// Config makes a Server. It is data only.
type Config struct {
	// Sources are served at POST /in/<name>. Their names must differ.
	Sources []bridge.Source
	// Settings are the process settings of the ingress. Zero values mean the
	// defaults of bridge.IngressConfig. Addr is not used: Run takes a
	// listener.
	Settings bridge.IngressConfig
	// Queen stores the events. Required.
	Queen Pusher
	// StopTimeout bounds the time Run takes to finish what was received, once
	// its context has ended. Defaults to 30 seconds.
	StopTimeout time.Duration
	// Logger defaults to discarding.
	Logger *slog.Logger
	// Fetcher gets the keys that providers publish; there should be one per
	// process. Nil: one that fetches over https.
	Fetcher signing.Fetcher
	// ShowSecret is called with the secret that a provider hands over in a
	// handshake (Asana, Notion). It must show it to the operator, once, on a
	// terminal, and must neither log nor store it. Nil: such a handshake is
	// answered 503. It may be called from several goroutines at once.
	ShowSecret func(source, secret string)
	// Confirm carries out the GETs that confirm subscriptions (Amazon SNS).
	// Nil: directly, to public addresses only.
	Confirm http.RoundTripper
	// Expected says that there is, or may be, a source of a name that is not
	// among the sources: the stored ones are not known yet, or it cannot be used
	// as it stands. It is then answered 503 and not 404, which some providers
	// take for good. The name is as it came, and may be anything. It may be
	// called from several goroutines at once. Nil: never.
	Expected func(source string) bool
	// Metrics is where the metrics are registered. Nil: nowhere.
	Metrics prometheus.Registerer
	// Now is the clock by which requests are received and timestamps judged.
	// Nil: the system's. Waits and deadlines always run on the system's
	// monotonic clock.
	Now func() time.Time
}

const (
	defaultMaxInFlight    = 1024
	defaultEnqueueTimeout = 5 * time.Second
	defaultStopTimeout    = 30 * time.Second
)

// Server receives webhooks. It is safe for concurrent use.
type Server struct {
	catalog        atomic.Pointer[catalog]
	updating       sync.Mutex // one Update at a time
	echo           *echo.Echo
	batcher        *batcher
	spooler        *spooler // nil without a spool
	fetcher        signing.Fetcher
	expected       func(string) bool
	confirmer      *confirmer
	showSecret     func(source, secret string)
	shown          *rate.Limiter
	acceptBuffered bool
	metrics        *metrics
	logger         *slog.Logger
	now            func() time.Time
	maxInFlight    int64
	enqueueTimeout time.Duration
	stopTimeout    time.Duration
	tls            bridge.IngressTLS
	certificate    atomic.Pointer[tls.Certificate] // nil: plain HTTP
	inFlight       atomic.Int64
	draining       atomic.Bool
	bodyRoom       atomic.Int64 // bytes left for large bodies
	exchanges      sync.Pool
}

// New compiles the sources. Its error names everything that is wrong.
func New(c Config) (*Server, error) {
	if c.Queen == nil {
		return nil, errors.New("ingress: Queen is required")
	}
	s := &Server{
		logger: c.Logger, now: c.Now, expected: c.Expected, fetcher: c.Fetcher, showSecret: c.ShowSecret,
		shown: rate.NewLimiter(1, 10), // anyone may hand over something to a source that waits for it
		// Queen's own local spool is not synced to disk, and what it holds
		// under some names is lost for good (measured 1.3.0).
		acceptBuffered: c.Settings.AcceptBuffered,
		maxInFlight:    int64(orDefault(c.Settings.MaxInFlight, defaultMaxInFlight)),
		enqueueTimeout: orDefault(c.Settings.EnqueueTimeout, defaultEnqueueTimeout),
		stopTimeout:    orDefault(c.StopTimeout, defaultStopTimeout),
		tls:            c.Settings.TLS,
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if s.expected == nil {
		s.expected = func(string) bool { return false }
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.fetcher == nil {
		s.fetcher = signing.NewFetcher(signing.FetcherConfig{})
	}
	s.bodyRoom.Store(allBodies)
	s.exchanges.New = func() any { return &exchange{server: s, bundle: queen.NewBundle()} }
	if err := s.build(c); err != nil {
		return nil, errors.Join(err, s.spooler.close())
	}
	return s, nil
}

func (s *Server) build(c Config) error {
	var err error
	if s.metrics, err = newMetrics(c.Metrics, &s.inFlight); err != nil {
		return fmt.Errorf("ingress: register metrics: %w", err)
	}
	if s.spooler, err = newSpooler(c, s.enqueueTimeout, s.logger); err != nil {
		return fmt.Errorf("ingress.spool: %w", err)
	}
	s.confirmer = newConfirmer(c.Confirm, s.logger, s.metrics)
	s.batcher = &batcher{
		config: c.Settings.Batch, pusher: c.Queen, spooler: s.spooler, logger: s.logger, metrics: s.metrics,
		buffers: make(map[bufferKey]*queen.Buffer),
	}
	first, err := s.compile(c.Sources, &catalog{})
	if err != nil {
		return err
	}
	s.catalog.Store(first)
	extract, err := ipExtractor(c.Settings.TrustedProxies)
	if err != nil {
		return fmt.Errorf("ingress.trusted_proxies: %w", err)
	}
	s.echo = newEcho(s.serve, extract)
	return nil
}

// newEcho makes an Echo without routes of its own: the handler looks paths up
// itself, whatever the method, so nothing is cleaned, decoded or redirected.
func newEcho(serve echo.HandlerFunc, extract echo.IPExtractor) *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.IPExtractor = extract
	e.RouteNotFound("/*", serve)
	// What Echo cannot route at all (OPTIONS *, CONNECT) goes the same way.
	e.HTTPErrorHandler = func(_ error, c echo.Context) { _ = serve(c) }
	return e
}

// ipExtractor believes X-Forwarded-For from the proxies listed and nobody
// else: the address of the socket counts.
func ipExtractor(proxies []string) (echo.IPExtractor, error) {
	if len(proxies) == 0 {
		return echo.ExtractIPDirect(), nil
	}
	prefixes, err := parsePrefixes(proxies)
	if err != nil {
		return nil, err
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, p := range prefixes {
		bits := p.Addr().BitLen()
		options = append(options, echo.TrustIPRange(&net.IPNet{
			IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), bits)}))
	}
	return echo.ExtractIPFromXFFHeader(options...), nil
}

// Handler serves the sources at /in/<source> and /in/<source>/; every other
// path is the same short 404. It applies the limits that a handler can; those
// of the connection (header size and time, contradicting lengths) are Run's. A
// deadline of the request's context bounds the wait for Queen, too.
func (s *Server) Handler() http.Handler { return s.echo }

// Settle waits until nothing of the answered requests is left to do: a
// subscription is confirmed after the answer (Amazon SNS). The error is that of
// ctx. It is for those who run the Handler where a process stands still between
// requests; Run settles by itself.
func (s *Server) Settle(ctx context.Context) error { return s.confirmer.settle(ctx) }

// Run serves listener until ctx ends, then refuses new requests, finishes
// those received within StopTimeout, and returns when all it started has
// stopped. What could not be stored by then was answered 503 and is logged.
// It may be called once; it closes the listener. A nil error means a complete
// stop.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	server, err := s.httpServer(ctx)
	if err != nil {
		_ = listener.Close()
		return errors.Join(err, s.spooler.close())
	}
	s.spooler.start()
	served := make(chan error, 1)
	go func() { served <- server.Serve(s.wrap(listener, server.TLSConfig)) }()
	select {
	case err = <-served:
		err = fmt.Errorf("serve webhooks on %s: %w", listener.Addr(), err)
		return errors.Join(err, s.drain(ctx, server))
	case <-ctx.Done():
		s.logger.LogAttrs(ctx, slog.LevelInfo, msgDraining, slog.Int64(keyInFlight, s.inFlight.Load()))
	}
	err = s.drain(ctx, server)
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}

// lastAnswers is how long the 503s of what was left may take to go out.
const lastAnswers = time.Second

// drain is the stop: nothing new, finish, then cut off what is left.
func (s *Server) drain(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.stopTimeout)
	defer cancel()
	s.updating.Lock() // whose buffers come too late would not be closed
	s.draining.Store(true)
	s.updating.Unlock()
	err := server.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("stop ingress: requests still open after %s: %w", s.stopTimeout, err)
	}
	for queue, items := range s.batcher.close() {
		s.logger.LogAttrs(ctx, slog.LevelError, msgLeft, slog.String(keyQueue, queue), slog.Int(keyItems, items))
		err = errors.Join(err, fmt.Errorf("stop ingress: %d events for queue %q not stored", items, queue))
	}
	s.confirmer.close(ctx)
	err = errors.Join(err, s.spooler.close())
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastAnswers)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close()
	}
	return err
}
