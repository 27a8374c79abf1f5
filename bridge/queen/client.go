package queen

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Config makes a Client.
type Config struct {
	// URLs are the Queen nodes, at least one: http or https, with an optional
	// path prefix. User and password in a URL are sent as basic
	// authentication when Token is empty; they are never printed.
	URLs []string
	// Token is the bearer token. Empty: none.
	Token string
	// Transport carries the requests. Nil: one keep-alive transport of the
	// client's own, tuned for long polls. The embedded broker in the same
	// process is reached through an in-process one.
	Transport http.RoundTripper
	// Timeout bounds a call that is no pop, connection setup included.
	// Defaults to 30 seconds. A pop may take its wait and 5 seconds more.
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

// Client speaks Queen's HTTP API. Safe for concurrent use.
//
// No call is repeated behind the caller's back, except that a node which
// could not be reached at all is replaced by the next one. What to do with an
// error is told by Uncertain, Temporary and Denied.
type Client struct {
	nodes     *nodes
	token     string
	transport http.RoundTripper
	own       *http.Transport // nil where Config.Transport was given
	timeout   time.Duration
	maxAnswer int64
	log       *slog.Logger
	bufs      *sync.Pool // of *[]byte: request bodies
}

// New makes a Client. It sends nothing. The error names the URL that is no
// good by its place in Config.URLs, never its text: it may hold a password.
func New(cfg Config) (*Client, error) {
	ns, err := newNodes(cfg.URLs)
	if err != nil {
		return nil, err
	}
	c := &Client{
		nodes: ns, token: cfg.Token, transport: cfg.Transport,
		timeout: cfg.Timeout, maxAnswer: cfg.MaxAnswer, log: cfg.Logger,
		bufs: &sync.Pool{New: func() any { return new([]byte) }},
	}
	if c.transport == nil {
		c.own = newTransport()
		c.transport = c.own
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
	return c, nil
}

// Close drops the idle connections of the client's own transport. Calls under
// way are not disturbed: end them through their contexts.
func (c *Client) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

func newNodes(urls []string) (*nodes, error) {
	if len(urls) == 0 {
		return nil, errors.New("queen client: at least one URL is needed")
	}
	ns := &nodes{}
	for i, raw := range urls {
		u, err := url.Parse(strings.TrimSpace(raw))
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.RawQuery != "" || u.Fragment != "" {
			return nil, fmt.Errorf("queen client: URL %d is not of the form http://host:port", i+1)
		}
		ns.list = append(ns.list, newNode(u))
	}
	return ns, nil
}
