package lambdatarget

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/exchange"
)

// maxAnswer bounds what is read of an answer where nobody asks for more, in
// bytes.
const maxAnswer = 64 << 10

// call is what is seen of one request below the SDK: it retries nothing, so
// there is one.
type call struct {
	exchange.Progress
	limit int64 // of the answer's body, in bytes

	err       error // of the request; nil with a status
	status    int
	header    http.Header
	truncated bool
	cut       bool
}

// callKey is the key of a call in a context.
type callKey struct{}

func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	if c == nil {
		c = &call{limit: maxAnswer}
	}
	return c
}

// failure is the response of a call without an answer. err is the SDK's: it
// also tells of credentials that were not found.
func (c *call) failure(ctx context.Context, err error) bridge.Response {
	if err == nil { // the SDK answered without a request
		return bridge.Response{Err: errors.New("no request was made"), Sent: c.Sent(), Class: bridge.FailureConnect}
	}
	resp := bridge.Response{Err: err, Sent: c.Sent(), Class: c.Failure(ctx, c.err)}
	if resp.Class == bridge.FailureConnect { // to Lambda: no event is to blame
		resp.Judged = &bridge.Judgement{Scope: bridge.ScopeTarget}
	}
	switch {
	case resp.Class == bridge.FailureTimeout && errors.Is(err, context.DeadlineExceeded):
		resp.Err = errNoAnswer
	case c.err != nil:
		resp.Err = c.err // without the SDK's words around it
	}
	return resp
}

var errNoAnswer = errors.New("no answer before the timeout: the function may run on")

// answerBody is an answer's body, read as far as it is needed. A body that is
// cut takes nothing from the status, which is known: to the SDK it ends.
type answerBody struct {
	io.ReadCloser
	call *call
	left int64
}

// Read reads at most what is left of the limit, and one byte that says whether
// there was more.
func (b *answerBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		var more [1]byte
		n, _ := io.ReadFull(b.ReadCloser, more[:])
		b.call.truncated = b.call.truncated || n > 0
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err != nil && err != io.EOF {
		b.call.truncated, b.call.cut = true, true
		err = io.EOF
	}
	return n, err
}

// head is as much of a body as was asked for, or by default maxAnswer bytes.
func head(body []byte, capture int64, truncated bool) ([]byte, bool) {
	limit := capture
	if limit <= 0 {
		limit = maxAnswer
	}
	if int64(len(body)) > limit {
		return body[:limit], true
	}
	return body, truncated
}
