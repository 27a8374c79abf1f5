package main

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/ingress"
)

const (
	// answerMargin is kept between the verdict and the end of the function.
	answerMargin = 500 * time.Millisecond
	// settleMargin is what waiting for the rest leaves of it.
	settleMargin = 100 * time.Millisecond
)

// function handles events. Lambda hands it one after the other, or several at
// once where it is set up so.
type function struct {
	handler http.Handler
	pushes  *pushes
	// settle waits for what the ingress does after an answer.
	settle func(context.Context) error
	log    *slog.Logger
}

// newFunction makes the ingress of a function: nothing waits for more, for
// nobody else comes, and TLS is the gateway's.
func newFunction(c ingress.Config) (*function, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	p := &pushes{to: c.Queen}
	c.Queen = p
	c.Settings.Batch.Linger, c.Settings.TLS = 0, bridge.IngressTLS{}
	server, err := ingress.New(c)
	if err != nil {
		return nil, err
	}
	return &function{handler: server.Handler(), pushes: p, settle: server.Settle, log: c.Logger}, nil
}

// Invoke implements lambda.Handler: the ingress answers the request in the
// event. An error means that the event is no request; whoever sent it then
// answers its own client 502.
//
// The ingress gives up 500 ms before the function ends. Whether a push that was
// cut off then had stored its events is unknown, so the answer is 503, and the
// sender comes again with the same ids.
func (f *function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	e, err := decodeEvent(payload)
	if err != nil {
		f.log.ErrorContext(ctx, "event refused", "error", err)
		return nil, err
	}
	var a answer
	r, err := e.request()
	if err != nil {
		f.log.WarnContext(ctx, "request refused", "status", http.StatusBadRequest, "error", err)
		a.Header().Set("Content-Type", "text/plain; charset=utf-8")
		a.Header().Set("X-Content-Type-Options", "nosniff")
		a.WriteHeader(http.StatusBadRequest)
		_, _ = a.Write([]byte("bad request\n"))
		return a.encode(e)
	}
	within, cancel := before(ctx, answerMargin)
	defer cancel()
	f.handler.ServeHTTP(&a, r.WithContext(within))
	f.rest(ctx)
	return a.encode(e)
}

// rest waits until nothing runs that a frozen process would leave hanging: a
// push that was cut off, the confirmation of a subscription.
func (f *function) rest(ctx context.Context) {
	ctx, cancel := before(ctx, settleMargin)
	defer cancel()
	f.pushes.wait(ctx)
	if err := f.settle(ctx); err != nil {
		f.log.WarnContext(ctx, "the confirmation of a subscription did not end in time; "+
			"give the function a longer timeout and confirm the subscription again", "error", err)
	}
}

// before is ctx, ending so much earlier where it ends at all.
func before(ctx context.Context, margin time.Duration) (context.Context, context.CancelFunc) {
	end, bounded := ctx.Deadline()
	if !bounded {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-margin))
}
