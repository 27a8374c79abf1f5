package ingress_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
	"github.com/queenbridge/queenbridge/ingress"
)

// TestTheRequestsOwnDeadlineBoundsTheWait: whoever runs the handler may have
// less time than enqueue_timeout, and must hear the verdict in it.
func TestTheRequestsOwnDeadlineBoundsTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := sources(open("a"))
		c.Settings.EnqueueTimeout = time.Minute
		c.Queen = &queentest.Shelf{Before: blockUntil(make(chan struct{}, 1), nil)}
		s, err := ingress.New(c)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start, rec := time.Now(), httptest.NewRecorder()
		s.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodPost, "/in/a", strings.NewReader("{}")))
		if took := time.Since(start); rec.Code != http.StatusServiceUnavailable || took != 2*time.Second {
			t.Errorf("answered %d after %s, want 503 after 2s", rec.Code, took)
		}
	})
}
