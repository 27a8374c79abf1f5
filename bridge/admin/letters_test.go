package admin_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/admin"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
)

// letters keep in memory what the dispatcher's operator keeps in Queen: package
// admin may not know it. The routes "pushes" has some, "draining" takes no
// redrives.
type letters struct {
	mu  sync.Mutex
	all []adminapi.DeadLetter
}

var _ admin.Letters = (*letters)(nil)

func newLetters(n int) *letters {
	l := &letters{}
	for i := range n {
		l.all = append(l.all, adminapi.DeadLetter{ID: fmt.Sprintf("letter-%d", i), Route: "pushes", Failed: time.Unix(int64(1e9+i), 0).UTC(),
			Redrivable: true, Payload: "the-payload", Reason: adminapi.Reason{Class: "http_4xx", Status: 400, Response: "the-response"}})
	}
	return l
}

func fits(s adminapi.Selection, l adminapi.DeadLetter) bool {
	return (len(s.IDs) == 0 || slices.Contains(s.IDs, l.ID)) && (len(s.Classes) == 0 || slices.Contains(s.Classes, l.Reason.Class))
}

func (l *letters) List(_ context.Context, route string, s adminapi.Selection, size, offset int) ([]adminapi.DeadLetter, int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []adminapi.DeadLetter
	for i := offset; i < len(l.all); i++ {
		if l.all[i].Route != route || !fits(s, l.all[i]) {
			continue
		}
		if len(found) == size {
			return found, i, nil
		}
		found = append(found, l.all[i])
	}
	return found, 0, nil
}

func (l *letters) Read(ctx context.Context, route, id string) (adminapi.DeadLetter, error) {
	found, _, _ := l.List(ctx, route, adminapi.Selection{IDs: []string{id}}, 1, 0)
	if len(found) == 0 {
		return adminapi.DeadLetter{}, fmt.Errorf("dead letter %s: %w", id, admin.ErrNotFound)
	}
	return found[0], nil
}

func (l *letters) Redrive(ctx context.Context, route string, o adminapi.Order) (adminapi.OrderResult, error) {
	if route == "draining" {
		return adminapi.OrderResult{}, fmt.Errorf("redrive: %w: the route drains", admin.ErrConflict)
	}
	return l.Delete(ctx, route, o)
}

func (l *letters) Delete(_ context.Context, route string, o adminapi.Order) (adminapi.OrderResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var r adminapi.OrderResult
	var left []adminapi.DeadLetter
	for _, one := range l.all {
		if one.Route != route || !fits(o.Selection, one) || o.Limit > 0 && r.Done == o.Limit {
			left = append(left, one)
			continue
		}
		r.Done++
	}
	if !o.DryRun {
		l.all = left
	}
	return r, nil
}

func (l *letters) Retries(_ context.Context, _, _ string, _ int, details bool) ([]adminapi.Retry, string, error) {
	r := adminapi.Retry{Key: "lineage/1", Due: time.Unix(2e9, 0).UTC(), Hop: 1}
	if details {
		r.Last = &adminapi.Failure{Class: "timeout"}
	}
	return []adminapi.Retry{r}, "", nil
}

func (l *letters) RetryNow(_ context.Context, _, key string) error {
	if key != "lineage/1" {
		return fmt.Errorf("retry %s: %w", key, admin.ErrNotFound)
	}
	return nil
}

// Replay refuses every route but one that is paused.
func (l *letters) Replay(_ context.Context, route string, since time.Time) (adminapi.ReplayResult, error) {
	switch route {
	case "paused":
		return adminapi.ReplayResult{Since: since, Partitions: 2, Pending: 7}, nil
	case "pushes":
		return adminapi.ReplayResult{}, fmt.Errorf("replay: %w: pause it first", admin.ErrConflict)
	}
	return adminapi.ReplayResult{}, admin.ErrNotFound
}

// tester answers what it got.
type tester struct{}

func (tester) TestFire(_ context.Context, route string, e bridge.Event) (adminapi.TestResult, error) {
	if route != "pushes" {
		return adminapi.TestResult{}, admin.ErrNotFound
	}
	return adminapi.TestResult{Outcome: "delivered", Status: 200, Elapsed: "1ms", Body: e.ContentType + " " + string(e.Body)}, nil
}
