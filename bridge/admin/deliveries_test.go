package admin_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/admin"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/bridge/rules"
)

// attempts keep what the dispatcher remembers: package admin may not know it.
type attempts []adminapi.Delivery

var _ admin.Deliveries = attempts{}

// newAttempts makes some of the numbers 1 to n.
func newAttempts(n int) attempts {
	var all attempts
	for i := range n {
		all = append(all, adminapi.Delivery{ID: strconv.Itoa(i + 1), Time: time.Unix(int64(1e9+i), 0).UTC(), Route: fmt.Sprint("r", i%2),
			Target: "ci", Delivery: fmt.Sprint("dlv_", i), Event: fmt.Sprint("e", i), Outcome: "retry", Status: 500, Class: "http_5xx", Attempt: 1})
	}
	return all
}

func (a attempts) Recent(_ context.Context, q adminapi.DeliveryQuery, size int, before int64) (items []adminapi.Delivery, next int64) {
	after, _ := strconv.ParseInt(q.After, 10, 64)
	for _, d := range slices.Backward(a) {
		id, _ := strconv.ParseInt(d.ID, 10, 64)
		switch {
		case before > 0 && id >= before, id <= after, q.Route != "" && q.Route != d.Route, q.Target != "" && q.Target != d.Target,
			q.Event != "" && q.Event != d.Event, q.Delivery != "" && q.Delivery != d.Delivery, q.Outcome != "" && q.Outcome != d.Outcome, d.Time.Before(q.Since):
			continue
		case len(items) == size:
			next, _ = strconv.ParseInt(items[size-1].ID, 10, 64)
			return items, next
		}
		items = append(items, d)
	}
	return items, 0
}

func withAttempts(n int) func(*admin.Config, *rules.Config) {
	return func(c *admin.Config, _ *rules.Config) { c.Deliveries = newAttempts(n) }
}

func TestDeliveriesComeInPages(t *testing.T) {
	t.Parallel()
	a := newAPI(t, withAttempts(5)).as(viewerToken)
	var ids []string
	for o := (adminapi.ListOptions{Size: 2}); ; {
		page, err := a.Deliveries(t.Context(), adminapi.DeliveryQuery{}, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Items {
			ids = append(ids, d.ID)
		}
		if o.Token = page.NextPageToken; o.Token == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"5", "4", "3", "2", "1"}, ids); diff != "" {
		t.Error(diff)
	}
}

func TestDeliveriesAreChosenByAllThatIsAsked(t *testing.T) {
	t.Parallel()
	a := newAPI(t, withAttempts(5))
	for name, tt := range map[string]struct {
		q    adminapi.DeliveryQuery
		want int
	}{
		"route":    {adminapi.DeliveryQuery{Route: "r1"}, 2},
		"target":   {adminapi.DeliveryQuery{Target: "none"}, 0},
		"event":    {adminapi.DeliveryQuery{Event: "e3"}, 1},
		"delivery": {adminapi.DeliveryQuery{Delivery: "dlv_0"}, 1},
		"outcome":  {adminapi.DeliveryQuery{Outcome: "dead"}, 0},
		"since":    {adminapi.DeliveryQuery{Since: time.Unix(1e9+3, 0)}, 2},
		"after":    {adminapi.DeliveryQuery{After: "4"}, 1},
	} {
		page, err := a.Deliveries(t.Context(), tt.q, adminapi.ListOptions{})
		if err != nil || len(page.Items) != tt.want || page.Items == nil {
			t.Errorf("%s: %+v, %v, want %d", name, page, err, tt.want)
		}
	}
}

func TestWrongQueriesOfDeliveriesAreRefused(t *testing.T) {
	t.Parallel()
	a := newAPI(t, withAttempts(1))
	for _, query := range []string{"outcome=lost", "outcome=", "after=x", "after=", "after=-1", "after=1234567890123456789", "since=now", "page_size=1001", "page_token=eA", "limit=1"} {
		if status, _, body := a.call("GET", "/v1/deliveries?"+query, ""); status != 400 {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
	if _, err := newAPI(t, nil).Deliveries(t.Context(), adminapi.DeliveryQuery{}, adminapi.ListOptions{}); !adminapi.IsCode(err, adminapi.CodeNotServed) {
		t.Errorf("without a dispatcher: %v", err)
	}
}

func TestStatusListsWhatItHasNotAsEmpty(t *testing.T) {
	t.Parallel()
	s, err := newAPI(t, nil).Status(t.Context())
	if err != nil || s.Routes == nil || s.Targets == nil {
		t.Errorf("Status = %+v, %v", s, err)
	}
}
