package queen

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// do sends a call and reads the answer whole, whatever its status. While it is
// 429 the call is sent again to the node that said so, as far as the call
// wants that.
func (c *Client) do(ctx context.Context, k *call) (*answer, error) {
	prefer := k.node
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return nil, k.failed("", false, err)
		}
		a, err := c.round(ctx, k, prefer)
		if err != nil {
			return nil, err
		}
		if a.ok() && a.encoded != "" {
			return nil, a.misfit("%s", a.encoded)
		}
		pause, again := k.pause(ctx, a, try)
		if !again {
			return a, nil
		}
		c.sayLimited(ctx, a, pause)
		if err := sleep(ctx, pause); err != nil {
			return nil, k.failed(a.node, false, err)
		}
		prefer = a.node
	}
}

// limitedNews is how often a 429 is news.
const limitedNews = 10 * time.Second

// sayLimited logs a 429 that is waited out: nobody else does.
func (c *Client) sayLimited(ctx context.Context, a *answer, pause time.Duration) {
	level := slog.LevelDebug
	now, last := time.Now().UnixNano(), c.limitedAt.Load()
	if now-last >= int64(limitedNews) && c.limitedAt.CompareAndSwap(last, now) {
		level = slog.LevelWarn
	}
	c.log.LogAttrs(ctx, level, "queen limits the rate, waiting", slog.String("node", a.node), slog.String("path", a.call.shownPath()),
		slog.Duration("wait", pause), slog.Any("error", a.statusError()))
}

// round tries the nodes, best first, until one answers or the next one must
// not be tried. Where one of them may have seen the call, the error says so,
// whoever was asked last.
func (c *Client) round(ctx context.Context, k *call, prefer string) (a *answer, err error) {
	token, err := c.credentials.token(ctx, "")
	if err != nil {
		return nil, k.failed("", false, err)
	}
	sent := false
	for _, n := range c.nodes.order(k.key, prefer, time.Now()) {
		began := time.Now()
		a, err = c.try(ctx, n, k, &token)
		c.judge(ctx, n, a, err, k.gaveUp(ctx, began))
		sent = sent || Uncertain(err) || err == nil && a.failed()
		if ctx.Err() != nil || !k.goesOn(a, err) {
			break
		}
	}
	var unanswered *CallError
	if errors.As(err, &unanswered) {
		unanswered.Sent = unanswered.Sent || sent
	}
	return a, err
}

// goesOn says whether the next node is to be tried after this end of a try: it
// is where the node certainly saw nothing, and where it failed but the call
// may be done twice.
func (k *call) goesOn(a *answer, err error) bool {
	var unanswered *CallError
	switch {
	case err == nil:
		return k.safe && a.failed()
	case !errors.As(err, &unanswered):
		return false // answered, if badly
	case !unanswered.Sent:
		return true
	}
	// Where a poll's whole wait is over its caller asks again.
	return k.safe && (k.tries != withoutEnd || !errors.Is(err, context.DeadlineExceeded))
}

// try sends a call to one node. A 401 is no answer yet where another token is
// to be had: nothing was done.
func (c *Client) try(ctx context.Context, n *node, k *call, token *string) (*answer, error) {
	a, err := c.send(ctx, n, k, *token)
	if err == nil && a.status == http.StatusUnauthorized && c.credentials.renew(ctx, token) {
		return c.send(ctx, n, k, *token)
	}
	return a, err
}

// gaveUp says that the caller ended a try so early that it tells nothing about
// the node. A poll may always be.
func (k *call) gaveUp(ctx context.Context, began time.Time) bool {
	return ctx.Err() != nil && (k.tries == withoutEnd || time.Since(began) < slow)
}

// judge remembers how a node did.
func (c *Client) judge(ctx context.Context, n *node, a *answer, err error, gaveUp bool) {
	var unanswered *CallError
	switch {
	case err == nil && !a.failed(), err != nil && !errors.As(err, &unanswered):
		n.markUp()
	case err != nil && gaveUp:
	case n.markDown(time.Now()) && len(c.nodes.list) > 1:
		if err == nil {
			err = a.statusError() // also of a 200 that is a page
		}
		c.log.LogAttrs(ctx, slog.LevelWarn, "queen node passed over",
			slog.String("node", n.name), slog.Duration("for", downFor), slog.Any("error", err))
	}
}

// failed says that the node itself is in trouble, or somebody else answers in
// its place. A switched-off surface is switched off everywhere
// (queen-contract.md §1.5).
func (a *answer) failed() bool {
	switch {
	case a.ok():
		return a.encoded != "" || a.status != http.StatusNoContent && !looksLikeJSON(a.body)
	case a.status < http.StatusInternalServerError:
		return a.status == http.StatusNotFound && !looksLikeJSON(a.body) // a balancer's, without the node
	case a.status != http.StatusServiceUnavailable:
		return true
	}
	reason, _ := rollbackReason(a.statusError().Code)
	return reason != RollbackDisabled
}

// looksLikeJSON tells an answer of Queen, an object or an array, from a page of
// whoever stands in front. A payload that is not JSON makes no difference.
func looksLikeJSON(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n")
	return len(body) > 0 && (body[0] == '{' || body[0] == '[')
}
