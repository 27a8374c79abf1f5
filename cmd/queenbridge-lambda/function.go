package main

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

const (
	// answerMargin is kept between our answer and the end of the function.
	answerMargin = 500 * time.Millisecond
	// settleMargin is what waiting for a cut-off push leaves of it.
	settleMargin = 100 * time.Millisecond
)

// function handles one event after the other.
type function struct {
	handler http.Handler
	client  *queen.Client
	pushes  *pushes
	log     *slog.Logger
}

// Invoke implements lambda.Handler: the handler of the ingress answers the
// request in the event. An error means that the event is no request; who sent
// it then answers its own client 502.
//
// The ingress gives up 500 ms before the function ends. Whether a push that was
// cut off then had stored its events is unknown, and the answer was 503: the
// sender comes again with the same ids.
func (f *function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	e, err := decodeEvent(payload)
	if err != nil {
		f.log.ErrorContext(ctx, "event refused", "error", err)
		return nil, err
	}
	end, bounded := ctx.Deadline()
	var a answer
	r, err := e.request()
	if err != nil {
		f.log.WarnContext(ctx, "request refused", "error", err)
		http.Error(&a, "bad request", http.StatusBadRequest)
		return a.encode(e)
	}
	if bounded {
		within, cancel := context.WithDeadline(ctx, end.Add(-answerMargin))
		defer cancel()
		r = r.WithContext(within)
		settled, cancel := context.WithDeadline(ctx, end.Add(-settleMargin))
		defer cancel()
		ctx = settled
	}
	f.handler.ServeHTTP(&a, r)
	f.pushes.wait(ctx)
	return a.encode(e)
}
