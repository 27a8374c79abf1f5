package adminapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxAnswer bounds what is read of an answer: a page of the largest resources.
const maxAnswer = 80 << 20

// request is one call.
type request struct {
	method, path string
	query        url.Values
	header       http.Header
	contentType  string
	body         []byte
	// repeatable says that sending it twice does no harm.
	repeatable bool
}

// do sends a request, again where that helps, and decodes a success into out.
func (c *Client) do(ctx context.Context, r request, out any) error {
	for try := 0; ; try++ {
		err := c.once(ctx, r, out)
		wait, again := c.again(err, try)
		if !again || !r.repeatable || ctx.Err() != nil {
			return err
		}
		if pause(ctx, wait) != nil {
			return err
		}
	}
}

// maxWait bounds the wait between two tries, whatever the bridge asks for.
const maxWait = 10 * time.Second

// again says whether and when a failed request is sent again.
func (c *Client) again(err error, try int) (time.Duration, bool) {
	if err == nil || try >= c.retries {
		return 0, false
	}
	wait := time.Duration(float64(250*time.Millisecond<<try) * (0.5 + rand.Float64()/2)) //nolint:gosec // jitter
	answer, answered := errors.AsType[*Error](err)
	switch {
	case !answered:
		_, isTransport := errors.AsType[*url.Error](err)
		return min(wait, maxWait), isTransport
	case answer.Status == http.StatusTooManyRequests, answer.Status == http.StatusServiceUnavailable && answer.Code != CodeNotServed,
		answer.Status == http.StatusBadGateway, answer.Status == http.StatusGatewayTimeout:
		return min(max(wait, answer.RetryAfter), maxWait), true
	}
	return 0, false
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Client) once(ctx context.Context, r request, out any) error {
	what := r.method + " " + r.path
	u := *c.base
	target := u.String() + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(r.body))
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	c.setHeaders(req, r)
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", what, &url.Error{Op: "read the answer of", URL: c.base.Redacted(), Err: err})
	case len(body) > maxAnswer:
		return fmt.Errorf("%s: the answer is larger than %d bytes", what, maxAnswer)
	case resp.StatusCode/100 != 2:
		return readError(resp, body)
	case len(body) == 0 || out == nil:
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("%s: the answer is no answer of the admin API: %w", what, err)
	}
	return nil
}

func (c *Client) setHeaders(req *http.Request, r request) {
	for name, values := range r.header {
		req.Header[name] = values
	}
	req.Header.Set("Accept", "application/json, application/problem+json")
	req.Header.Set("User-Agent", c.userAgent)
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	} else if r.method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	}
}

// readError makes an Error of any answer, also one that a proxy wrote.
func readError(resp *http.Response, body []byte) error {
	e := &Error{}
	media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if media != "application/problem+json" || json.Unmarshal(body, e) != nil {
		e = &Error{Title: http.StatusText(resp.StatusCode), Code: foreignCode(resp.StatusCode),
			Detail: "the answer is no answer of the admin API: is the endpoint that of a bridge's admin listener?"}
	}
	e.Status = resp.StatusCode
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(min(seconds, 3600)) * time.Second
	}
	return e
}

// foreignCode is the code of an answer that has none: never CodeNotFound, which
// would make a resource of every wrong URL.
func foreignCode(status int) Code {
	switch status {
	case http.StatusUnauthorized:
		return CodeUnauthenticated
	case http.StatusTooManyRequests:
		return CodeRateLimited
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return CodeUnavailable
	}
	return CodeInternal
}

// IsCode says that an error is an answer of the admin API with that code.
func IsCode(err error, code Code) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}
