package queen

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Config makes a Client.
type Config struct {
	// URLs are the Queen nodes, at least one: http or https, with an optional
	// path prefix. User and password in a URL are sent as basic
	// authentication when Token is empty; they are never printed.
	URLs []string
	// Strategy chooses among several URLs. Defaults to StrategyAffinity.
	Strategy Strategy
	// Token is the bearer token. Empty: none. Exclusive with TokenFile and
	// TokenSource.
	Token string
	// TokenFile is a file that holds the bearer token; white space around it
	// is dropped. It is read again when it changes, looked at once a second
	// at most, and after a 401. A file that cannot be read any more leaves
	// the last token. Empty: none.
	TokenFile string
	// TokenSource is asked for the bearer token. Nil: none.
	TokenSource TokenSource
	// CA is a PEM file of the authorities accepted for https URLs. Empty: the
	// system's. Exclusive with Transport.
	CA string
	// Transport carries the requests. Nil: one keep-alive transport of the
	// client's own, tuned for long polls, TLS 1.2 or newer. The embedded
	// broker in the same process is reached through an in-process one.
	Transport http.RoundTripper
	// Timeout bounds one try of a call that is no pop at one node, connection
	// setup included. Defaults to 30 seconds. A pop may take its wait and 5
	// seconds more.
	Timeout time.Duration
	// MaxAnswer bounds an answer's body in bytes; a longer one is a
	// *BadBodyError. Defaults to 80 MiB: Queen takes requests of 64 MiB.
	MaxAnswer int64
	// Logger defaults to discarding.
	Logger *slog.Logger
}

// Defaults of Config.
const (
	DefaultTimeout   = 30 * time.Second
	DefaultMaxAnswer = 80 << 20
	popGrace         = 5 * time.Second // as the official clients: queen-contract.md §12
)

// Client speaks Queen's HTTP API. Safe for concurrent use. What is sent again
// on its own is told by the package comment; what to do with an error by
// Uncertain, Temporary and Denied.
type Client struct {
	nodes       *nodes
	credentials credentials
	transport   http.RoundTripper
	own         *http.Transport // nil where Config.Transport was given
	timeout     time.Duration
	maxAnswer   int64
	log         *slog.Logger
	bufs        *sync.Pool   // of *[]byte: request bodies
	limitedAt   atomic.Int64 // when a 429 was last logged, Unix nanoseconds
}

// New makes a Client. It reads TokenFile and CA, and sends nothing. An error
// names a URL that is no good by its place in Config.URLs, never its text: it
// may hold a password.
func New(cfg Config) (*Client, error) {
	if err := cfg.Strategy.check(); err != nil {
		return nil, err
	}
	list, err := parseNodes(cfg.URLs)
	if err != nil {
		return nil, err
	}
	c := &Client{
		nodes: newNodes(list, cfg.Strategy), transport: cfg.Transport,
		timeout: cfg.Timeout, maxAnswer: cfg.MaxAnswer, log: cfg.Logger,
		bufs: &sync.Pool{New: func() any { return new([]byte) }},
	}
	if c.timeout <= 0 {
		c.timeout = DefaultTimeout
	}
	if c.maxAnswer <= 0 {
		c.maxAnswer = DefaultMaxAnswer
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.credentials, err = newCredentials(&cfg, c.log); err != nil {
		return nil, err
	}
	if err := c.connect(&cfg); err != nil {
		return nil, err
	}
	return c, nil
}

// connect makes the transport, unless one was given.
func (c *Client) connect(cfg *Config) error {
	https := slices.ContainsFunc(c.nodes.list, func(n *node) bool { return n.base.Scheme == "https" })
	switch {
	case cfg.CA != "" && cfg.Transport != nil:
		return errors.New("queen client: CA and Transport exclude each other")
	case cfg.CA != "" && !https:
		return errors.New("queen client: a CA is given, but no URL begins with https")
	case cfg.Transport != nil:
		return nil
	}
	roots, err := readCA(cfg.CA)
	if err != nil {
		return fmt.Errorf("queen client: %w", err)
	}
	c.own = newTransport(roots, len(c.nodes.list) > 1)
	c.transport = c.own
	return nil
}

// Close drops the idle connections of the client's own transport. Calls under
// way are not disturbed: end them through their contexts.
func (c *Client) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

func parseNodes(urls []string) ([]*node, error) {
	if len(urls) == 0 {
		return nil, errors.New("queen client: at least one URL is needed")
	}
	list := make([]*node, 0, len(urls))
	for i, raw := range urls {
		u, err := url.Parse(strings.TrimSpace(raw))
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.RawQuery != "" || u.Fragment != "" {
			return nil, fmt.Errorf("queen client: URL %d is not of the form http://host:port", i+1)
		}
		list = append(list, newNode(u))
	}
	return list, nil
}
