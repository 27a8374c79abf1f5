package ingress

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

type panicQueen struct{ calls int }

func (q *panicQueen) Push(_ context.Context, items []queen.Item) ([]queen.PushVerdict, error) {
	if q.calls++; q.calls == 1 {
		panic("client fell down")
	}
	if q.calls == 2 {
		return nil, nil // fewer verdicts than items
	}
	v := make([]queen.PushVerdict, len(items))
	for i := range v {
		v[i].Status = queen.PushQueued
	}
	return v, nil
}

func TestAPusherThatMisbehavesIsAFailedPush(t *testing.T) {
	t.Parallel()
	q := &panicQueen{}
	s, err := New(Config{Queen: q, Sources: []bridge.Source{{Name: "a", Scheme: "none"}}})
	if err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/in/a", strings.NewReader("{}")))
	if rec.Code != http.StatusOK || q.calls != 3 {
		t.Errorf("status %d after %d pushes, want 200 after 3", rec.Code, q.calls)
	}
}

func TestAllBodiesTogetherAreBounded(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Queen: &panicQueen{calls: 2}, Sources: []bridge.Source{{Name: "a", Scheme: "none"}}})
	if err != nil {
		t.Fatal(err)
	}
	post := func(size int) int {
		rec := httptest.NewRecorder()
		s.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/in/a", strings.NewReader(strings.Repeat("x", size))))
		return rec.Code
	}
	s.bodyRoom.Store(1 << 20)
	if got := post(4 << 20); got != http.StatusServiceUnavailable {
		t.Errorf("more than there is room for: status %d, want 503", got)
	}
	for range 3 {
		if got := post(300 << 10); got != http.StatusOK {
			t.Errorf("what there is room for: status %d, want 200", got)
		}
	}
	if got := s.bodyRoom.Load(); got != 1<<20 {
		t.Errorf("%d bytes of room are left, want all of them back", got)
	}
}
