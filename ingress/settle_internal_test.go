package ingress

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestSettleWaitsForConfirmations: a process that stands still after an answer
// would leave them undone.
func TestSettleWaitsForConfirmations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, err := newMetrics(nil, new(atomic.Int64))
		if err != nil {
			t.Fatal(err)
		}
		var called atomic.Bool
		transport := transportFunc(func(r *http.Request) (*http.Response, error) {
			time.Sleep(3 * time.Second) // of the bubble's clock: a slow provider
			called.Store(true)
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
		})
		s := &Server{confirmer: newConfirmer(transport, slog.New(slog.DiscardHandler), m)}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Settle(ended); err != nil {
			t.Errorf("with nothing to do: Settle = %v", err)
		}
		if !s.confirmer.reserve() {
			t.Fatal("reserve = false")
		}
		s.confirmer.start("sns", "https://sns.us-east-1.amazonaws.com/")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Settle(ctx); err == nil || called.Load() {
			t.Errorf("before the call has ended: Settle = %v, called %v; want an error", err, called.Load())
		}
		if err := s.Settle(t.Context()); err != nil || !called.Load() {
			t.Errorf("Settle = %v, called %v; want nil after the call", err, called.Load())
		}
		for range confirmAtOnce {
			if !s.confirmer.reserve() {
				t.Fatal("Settle has kept a call")
			}
		}
	})
}
