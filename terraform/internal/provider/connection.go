package provider

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
)

// connection is a configured provider: the admin API of one bridge.
type connection struct {
	*adminapi.Client
	// once asks a single time: what a plan finds out is not worth a wait.
	once        *adminapi.Client
	ingressBase string // without a slash at its end; "" where it is not known

	mu      sync.Mutex
	schemes map[string]adminapi.Scheme // nil until they were read
}

// settings are the provider's arguments with what the environment adds.
type settings struct {
	endpoint, token, ingressBase, userAgent string
	timeout                                 time.Duration
}

// maxConnections is what a run of Terraform with a high -parallelism keeps open.
const maxConnections = 64

func connect(s settings) (*connection, error) {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		transport = &http.Transport{Proxy: http.ProxyFromEnvironment}
	}
	transport = transport.Clone()
	transport.MaxIdleConnsPerHost = maxConnections
	config := adminapi.Config{
		Endpoint: s.endpoint, Token: bridge.Secret(s.token), UserAgent: s.userAgent, MaxRetries: 5,
		HTTPClient: &http.Client{Transport: transport, Timeout: s.timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, // the token stays where it was meant to go
	}
	client, err := adminapi.NewClient(config)
	if err != nil {
		return nil, err
	}
	config.MaxRetries = -1
	once, err := adminapi.NewClient(config)
	return &connection{Client: client, once: once, ingressBase: strings.TrimSuffix(s.ingressBase, "/")}, err
}

// setupHint is what a scheme's description says to paste where, "" where it
// cannot be had: no reason to fail for.
func (c *connection) setupHint(ctx context.Context, scheme string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.schemes == nil {
		list, err := c.Schemes(ctx)
		if err != nil {
			tflog.Warn(ctx, "schemes not read", map[string]any{"error": err.Error()})
			return ""
		}
		c.schemes = map[string]adminapi.Scheme{}
		for _, s := range list {
			c.schemes[s.Name] = s
		}
	}
	return c.schemes[scheme].Docs
}

// ingressURL is where a source is served.
func (c *connection) ingressURL(doc bridge.Node, meta adminapi.Meta) string {
	if given := doc.Member("public_url"); given.Kind == bridge.NodeString && given.Text != "" {
		return given.Text
	}
	return c.ingressBase + meta.IngressPath
}
