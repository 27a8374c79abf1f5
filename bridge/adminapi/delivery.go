package adminapi

import (
	"context"
	"net/http"
	"time"
)

// Delivery is one attempt to deliver an event on one route, or one dead letter.
// It holds no body and no header; its texts are at most 512 bytes.
type Delivery struct {
	// ID orders the records of a process, over its restarts too: the later one
	// is larger. It is of 16 digits.
	ID string `json:"id"`
	// Time is when the outcome was known.
	Time time.Time `json:"time"`
	// Route and Target are their names.
	Route  string `json:"route"`
	Target string `json:"target"`
	// Delivery is the webhook-id that the function saw.
	Delivery string `json:"delivery"`
	// Event is the transaction id; it was first in Queue, in Partition.
	Event     string `json:"event"`
	Queue     string `json:"queue"`
	Partition string `json:"partition"`
	// Hop counts every move of the delivery; 0 in the source's queue.
	Hop int `json:"hop"`
	// Attempt is the number of the call, 1 for the first; of a dead_letter, how
	// many there were.
	Attempt int `json:"attempt"`
	// Outcome is delivered, retry, hold or dead; or dead_letter, where one was
	// stored. An event that was never called has only that record.
	Outcome string `json:"outcome"`
	// Status of the answer; 0: there was none.
	Status int `json:"status"`
	// Class and Error say why it was not delivered; "" where it was.
	Class string `json:"class"`
	Error string `json:"error"`
	// Elapsed is how long the call took, such as 12ms; "" for a dead_letter.
	Elapsed string `json:"elapsed"`
	// Delay is when it is tried again, counted from Time, such as 5s; "" where
	// it is not.
	Delay string `json:"delay"`
	// Detached: the call outlasted its lease, and a retry was scheduled before
	// its outcome was known.
	Detached bool `json:"detached"`
	// Batch is how many events the call carried; 0 for a dead_letter.
	Batch int `json:"batch"`
}

// DeliveryQuery chooses deliveries: those that fit all that is set.
type DeliveryQuery struct {
	Route, Target, Event, Delivery, Outcome string
	// Since is the earliest time. Zero: no bound.
	Since time.Time
	// After is the ID of a record: only later ones. "": no bound.
	After string
}

// DeliveryPage is one page of deliveries, newest first.
type DeliveryPage struct {
	Items []Delivery `json:"items"`
	// NextPageToken is page_token of the next page; empty on the last one.
	NextPageToken string `json:"next_page_token"`
}

// Deliveries lists recent attempts and dead letters of the process that
// answers. It remembers some thousands, and none of the other processes: their
// logs and metrics have all.
func (c *Client) Deliveries(ctx context.Context, d DeliveryQuery, o ListOptions) (DeliveryPage, error) {
	q := o.query()
	for name, value := range map[string]string{"route": d.Route, "target": d.Target, "event": d.Event, "delivery": d.Delivery,
		"outcome": d.Outcome, "since": rfc3339(d.Since), "after": d.After} {
		if value != "" {
			q.Set(name, value)
		}
	}
	var page DeliveryPage
	err := c.do(ctx, request{method: http.MethodGet, path: "/v1/deliveries", query: q, repeatable: true}, &page)
	return page, err
}
