package adminapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// ListOptions choose a page. Size 0 means the bridge's default (100), Token ""
// the first page.
type ListOptions struct {
	Size  int
	Token string
}

func (o ListOptions) query() url.Values {
	q := url.Values{}
	if o.Size > 0 {
		q.Set("page_size", strconv.Itoa(o.Size))
	}
	if o.Token != "" {
		q.Set("page_token", o.Token)
	}
	return q
}

// DeadLetters lists dead letters of a route, also of one that is gone. Of the
// selection at most one class counts.
func (c *Client) DeadLetters(ctx context.Context, route string, s Selection, o ListOptions) (DeadLetterPage, error) {
	q := o.query()
	for name, value := range map[string]string{"event": s.Event, "since": rfc3339(s.Since), "until": rfc3339(s.Until)} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if len(s.Classes) > 1 || len(s.IDs) > 0 {
		return DeadLetterPage{}, fmt.Errorf("list dead letters: only one class, and no ids")
	}
	if len(s.Classes) == 1 {
		q.Set("class", s.Classes[0])
	}
	var page DeadLetterPage
	err := c.do(ctx, request{method: http.MethodGet, path: lettersPath(route), query: q, repeatable: true}, &page)
	return page, err
}

func rfc3339(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func lettersPath(route string) string {
	return resourcePath(bridge.KindRoute, route) + "/dead-letters"
}

// DeadLetter reads one dead letter; its payload, too, where that is asked for,
// which takes an operator's token.
func (c *Client) DeadLetter(ctx context.Context, route, id string, payload bool) (DeadLetter, error) {
	q := url.Values{}
	if payload {
		q.Set("payload", "true")
	}
	var l DeadLetter
	err := c.do(ctx, request{method: http.MethodGet, path: lettersPath(route) + "/" + url.PathEscape(id), query: q, repeatable: true}, &l)
	return l, err
}

// Redrive lets dead letters be delivered again. Repeating it does nothing twice.
func (c *Client) Redrive(ctx context.Context, route string, o Order) (OrderResult, error) {
	return c.order(ctx, lettersPath(route)+"/redrive", o)
}

// DeleteDeadLetters deletes dead letters for good.
func (c *Client) DeleteDeadLetters(ctx context.Context, route string, o Order) (OrderResult, error) {
	return c.order(ctx, lettersPath(route)+"/delete", o)
}

func (c *Client) order(ctx context.Context, path string, o Order) (OrderResult, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return OrderResult{}, fmt.Errorf("write order: %w", err)
	}
	var result OrderResult
	err = c.do(ctx, request{method: http.MethodPost, path: path, body: body, repeatable: true}, &result)
	return result, err
}

// Retries lists the pending retries of a route; details cost the bridge a call
// of Queen for each.
func (c *Client) Retries(ctx context.Context, route string, details bool, o ListOptions) (RetryPage, error) {
	q := o.query()
	if details {
		q.Set("details", "true")
	}
	var page RetryPage
	err := c.do(ctx, request{method: http.MethodGet, path: resourcePath(bridge.KindRoute, route) + "/retries", query: q, repeatable: true}, &page)
	return page, err
}

// RetryNow lets a pending retry be due at once.
func (c *Client) RetryNow(ctx context.Context, route, key string) error {
	path := resourcePath(bridge.KindRoute, route) + "/retries/" + url.PathEscape(key) + "/now"
	return c.do(ctx, request{method: http.MethodPost, path: path, repeatable: true}, nil)
}

// TestFire calls a route's target with an event as a first delivery would. It is
// not sent again where the answer is lost: the function may have been called.
func (c *Client) TestFire(ctx context.Context, route string, e TestEvent) (TestResult, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return TestResult{}, fmt.Errorf("write test event: %w", err)
	}
	var result TestResult
	err = c.do(ctx, request{method: http.MethodPost, path: resourcePath(bridge.KindRoute, route) + "/test", body: body}, &result)
	return result, err
}
