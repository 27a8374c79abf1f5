package adminapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// DefaultEndpoint is where the admin API is when nothing says otherwise.
const DefaultEndpoint = "http://127.0.0.1:8081"

// Config makes a Client.
type Config struct {
	// Endpoint is the URL of the admin listener. Empty means DefaultEndpoint.
	Endpoint string
	// Token is the bearer token. Empty means none, which only a bridge without
	// tokens accepts, on loopback.
	Token bridge.Secret
	// HTTPClient makes the requests. Nil means one that follows no redirects,
	// with a timeout of 30 seconds for each.
	HTTPClient *http.Client
	// UserAgent names the program that asks. Empty means queenbridge-client.
	UserAgent string
	// MaxRetries bounds how often a request that was answered 429 or 503, or
	// not at all, is sent again. 0 means 4; -1 means never. Only requests that
	// may be repeated are.
	MaxRetries int
}

// Client calls the admin API. It is safe for concurrent use. Its errors are of
// type *Error where the bridge answered, and else say what could not be done.
type Client struct {
	base      *url.URL
	token     bridge.Secret
	http      *http.Client
	userAgent string
	retries   int
}

// NewClient checks the endpoint; it does not connect.
func NewClient(c Config) (*Client, error) {
	if c.Endpoint == "" {
		c.Endpoint = DefaultEndpoint
	}
	base, err := url.Parse(c.Endpoint)
	switch {
	case err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "":
		return nil, errors.New("endpoint of the admin API: must be a URL such as http://127.0.0.1:8081")
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("endpoint of the admin API: must not hold a user, query or fragment")
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	client := &Client{base: base, token: c.Token, http: c.HTTPClient, userAgent: c.UserAgent, retries: c.MaxRetries}
	if client.http == nil {
		client.http = &http.Client{Timeout: 30 * time.Second, CheckRedirect: noRedirect}
	}
	if client.userAgent == "" {
		client.userAgent = "queenbridge-client"
	}
	if client.retries == 0 {
		client.retries = 4
	}
	return client, nil
}

// noRedirect keeps the token where it was meant to go.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Read returns one resource.
func (c *Client) Read(ctx context.Context, kind bridge.Kind, name string) (Resource, error) {
	var r Resource
	err := c.do(ctx, request{method: http.MethodGet, path: resourcePath(kind, name), repeatable: true}, &r)
	return r, err
}

// ListPage returns one page of a kind's resources, in order of their names.
// Size 0 means the bridge's default (100), token "" the first page.
func (c *Client) ListPage(ctx context.Context, kind bridge.Kind, size int, token string) (Page, error) {
	query := url.Values{}
	if size > 0 {
		query.Set("page_size", fmt.Sprint(size))
	}
	if token != "" {
		query.Set("page_token", token)
	}
	var p Page
	err := c.do(ctx, request{method: http.MethodGet, path: "/v1/" + string(kind), query: query, repeatable: true}, &p)
	return p, err
}

// List yields all resources of a kind, page by page; an error is the last.
func (c *Client) List(ctx context.Context, kind bridge.Kind) iter.Seq2[Resource, error] {
	return func(yield func(Resource, error) bool) {
		for token := ""; ; {
			page, err := c.ListPage(ctx, kind, 0, token)
			if err != nil {
				yield(Resource{}, err)
				return
			}
			for _, r := range page.Items {
				if !yield(r, nil) {
					return
				}
			}
			if token = page.NextPageToken; token == "" {
				return
			}
		}
	}
}

// WriteOptions say under which conditions a resource is written.
type WriteOptions struct {
	// IfMatch is the version the resource must have. Empty means any, or none.
	IfMatch string
	// MustNotExist writes only where there is no such resource. One that is what
	// the document says already is taken for the one written: the answer to a
	// first try may have been lost.
	MustNotExist bool
	// Stored writes under a name that the configuration file has, too: the
	// resource comes into use when the file no longer has it.
	Stored bool
	// ValidateOnly reports what a write would, and writes nothing.
	ValidateOnly bool
}

// Put makes a resource what the document says. Writing the same again changes
// nothing, its version included.
func (c *Client) Put(ctx context.Context, kind bridge.Kind, name string, document json.RawMessage, o WriteOptions) (Resource, error) {
	put := func(o WriteOptions) (Resource, error) {
		return c.write(ctx, http.MethodPut, "application/json", resourcePath(kind, name), document, o)
	}
	r, err := put(o)
	if !o.MustNotExist || !IsCode(err, CodePrecondition) {
		return r, err
	}
	there, askErr := put(WriteOptions{Stored: o.Stored, ValidateOnly: true})
	if askErr != nil || there.Meta.Change == nil || there.Meta.Change.Action != ActionNone {
		return r, err
	}
	return there, nil
}

// Patch applies a JSON merge patch (RFC 7396) to a resource: fields that are
// null go, fields that it does not mention stay.
func (c *Client) Patch(ctx context.Context, kind bridge.Kind, name string, patch json.RawMessage, o WriteOptions) (Resource, error) {
	return c.write(ctx, http.MethodPatch, "application/merge-patch+json", resourcePath(kind, name), patch, o)
}

func (c *Client) write(ctx context.Context, method, contentType, path string, body json.RawMessage, o WriteOptions) (Resource, error) {
	r := request{method: method, path: path, contentType: contentType, body: body, header: http.Header{}, repeatable: true}
	if o.IfMatch != "" {
		r.header.Set("If-Match", quoted(o.IfMatch))
	}
	if o.MustNotExist {
		r.header.Set("If-None-Match", "*")
	}
	r.query = url.Values{}
	if o.ValidateOnly {
		r.query.Set("validate_only", "true")
	}
	if o.Stored {
		r.query.Set("stored", "true")
	}
	var out Resource
	err := c.do(ctx, r, &out)
	return out, err
}

// Delete deletes a resource. A route drains first: gone is false then, and the
// route is gone once reading it is an error with CodeNotFound. ifMatch is the
// version it must have; "" means any.
func (c *Client) Delete(ctx context.Context, kind bridge.Kind, name, ifMatch string) (gone bool, err error) {
	return c.delete(ctx, resourcePath(kind, name), ifMatch, nil)
}

// DeleteTarget deletes a target and every route that uses it: the routes drain
// first, and gone is false while one does. ifMatch is as for Delete.
func (c *Client) DeleteTarget(ctx context.Context, name, ifMatch string) (gone bool, err error) {
	return c.delete(ctx, resourcePath(bridge.KindTarget, name), ifMatch, url.Values{"drain": {"true"}})
}

func (c *Client) delete(ctx context.Context, path, ifMatch string, query url.Values) (gone bool, err error) {
	r := request{method: http.MethodDelete, path: path, query: query, header: http.Header{}, repeatable: true}
	if ifMatch != "" {
		r.header.Set("If-Match", quoted(ifMatch))
	}
	var left Resource
	if err := c.do(ctx, r, &left); err != nil {
		return false, err
	}
	return left.Meta.State != StateDraining, nil
}

// Pause pauses a route or target, in every process and beside its document,
// also one of the configuration file; or a stored source, by its field paused.
// Reason is for those who find it paused.
func (c *Client) Pause(ctx context.Context, kind bridge.Kind, name, reason string) (Resource, error) {
	body, err := json.Marshal(PauseRequest{Reason: reason})
	if err != nil {
		return Resource{}, err
	}
	return c.act(ctx, kind, name, "pause", body)
}

// Resume undoes Pause.
func (c *Client) Resume(ctx context.Context, kind bridge.Kind, name string) (Resource, error) {
	return c.act(ctx, kind, name, "resume", nil)
}

func (c *Client) act(ctx context.Context, kind bridge.Kind, name, action string, body []byte) (Resource, error) {
	var r Resource
	err := c.do(ctx, request{method: http.MethodPost, path: resourcePath(kind, name) + "/" + action, body: body, repeatable: true}, &r)
	return r, err
}

// Status returns the state of the process that answers.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	err := c.do(ctx, request{method: http.MethodGet, path: "/v1/status", repeatable: true}, &s)
	return s, err
}

// Schemes returns every preset and generic verifier.
func (c *Client) Schemes(ctx context.Context) ([]Scheme, error) {
	var l SchemeList
	err := c.do(ctx, request{method: http.MethodGet, path: "/v1/schemes", repeatable: true}, &l)
	return l.Items, err
}

// Reseal seals every secret that was sealed under an older key under the
// newest one.
func (c *Client) Reseal(ctx context.Context) (Resealed, error) {
	var r Resealed
	err := c.do(ctx, request{method: http.MethodPost, path: "/v1/reseal", repeatable: true}, &r)
	return r, err
}

// resourcePath escapes a name, also the two that a path would lose.
func resourcePath(kind bridge.Kind, name string) string {
	segment := url.PathEscape(name)
	if name == "." || name == ".." {
		segment = strings.ReplaceAll(name, ".", "%2E")
	}
	return "/v1/" + string(kind) + "/" + segment
}

func quoted(version string) string { return `"` + version + `"` }
