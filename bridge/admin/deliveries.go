package admin

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
)

// Deliveries is what this process remembers of its recent attempts. Its methods
// may be called at once.
type Deliveries interface {
	// Recent returns a page, newest first, of those before the ID before, and
	// the ID to ask for the next page with; 0 stands for none.
	Recent(ctx context.Context, q adminapi.DeliveryQuery, size int, before int64) (items []adminapi.Delivery, next int64)
}

// outcomes are those that deliveries are chosen by.
var outcomes = []string{"delivered", "retry", "hold", "dead", "dead_letter"}

// idPattern is that of Delivery.ID: it fits an int64.
const idPattern = "^[0-9]{1,18}$"

func (s *Server) deliveryEndpoint() endpoint {
	return endpoint{method: "GET", path: "/v1/deliveries", role: bridge.RoleViewer, id: "list_deliveries",
		summary: "List recent attempts of the process that answers, newest first",
		text:    "From its memory, which holds some thousands; the log and the metrics of all processes have all.",
		query: []parameter{pageSize, pageToken, {"route", "Only of this route.", textSchema}, {"target", "Only of this target.", textSchema},
			{"event", "Only of this transaction id.", textSchema}, {"delivery", "Only of this webhook-id.", textSchema},
			{"outcome", "Only with this outcome.", map[string]any{"type": "string", "enum": outcomes}},
			{"since", "Only those from then on.", timeSchema},
			{"after", "Only those after the one of this id.", map[string]any{"type": "string", "pattern": idPattern}}},
		answers: map[int]any{200: adminapi.DeliveryPage{}}, errors: []adminapi.Code{adminapi.CodeNotServed}, serve: s.deliveries}
}

func (s *Server) deliveries(q *request) (answer, error) {
	size, token, err := paging(q)
	if err != nil {
		return answer{}, err
	}
	before, ok := recordID(token)
	if !ok {
		return answer{}, problem(adminapi.CodeMalformed, "page_token is none that this API gave out")
	}
	query, err := deliveryQuery(q)
	switch {
	case err != nil:
		return answer{}, err
	case s.config.Deliveries == nil:
		return answer{}, errNotServed
	}
	items, next := s.config.Deliveries.Recent(q.Context(), query, size, before)
	return answer{status: http.StatusOK, body: deliveryPage(items, next)}, nil
}

func deliveryPage(items []adminapi.Delivery, next int64) adminapi.DeliveryPage {
	page := adminapi.DeliveryPage{Items: append([]adminapi.Delivery{}, items...)}
	if next > 0 {
		page.NextPageToken = token(strconv.FormatInt(next, 10))
	}
	return page
}

func deliveryQuery(q *request) (adminapi.DeliveryQuery, error) {
	d := adminapi.DeliveryQuery{Route: q.query.Get("route"), Target: q.query.Get("target"), Event: q.query.Get("event"),
		Delivery: q.query.Get("delivery"), Outcome: q.query.Get("outcome"), After: q.query.Get("after")}
	if q.query.Has("outcome") && !slices.Contains(outcomes, d.Outcome) {
		return d, problem(adminapi.CodeMalformed, "outcome must be delivered, retry, hold, dead or dead_letter")
	}
	if _, ok := recordID(d.After); !ok || q.query.Has("after") && d.After == "" {
		return d, problem(adminapi.CodeMalformed, "after must be the id of a delivery")
	}
	var err error
	d.Since, err = q.time("since")
	return d, err
}

// recordID reads the ID of a delivery; 0 is that of "".
func recordID(text string) (int64, bool) {
	if text == "" {
		return 0, true
	}
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err == nil && len(text) <= 18
}
