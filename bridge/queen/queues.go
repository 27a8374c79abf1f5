package queen

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// Configure sets all options of a queue and creates it if need be. What
// QueueOptions does not name returns to Queen's default: brokers before 1.6
// replace, and later ones are asked to (queen-contract.md §2.1). Both
// dead-letter switches are set: an exhausted message is never dropped.
func (c *Client) Configure(ctx context.Context, o QueueOptions) error {
	if err := o.check(); err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	body := c.pooled(o.append(c.buffer()))
	defer body.release()
	a, err := c.do(ctx, &call{method: "POST", path: "/api/v1/configure", body: body, safe: true})
	if err != nil {
		return err
	}
	var wire struct {
		Configured bool   `json:"configured"`
		Queue      string `json:"queue"`
	}
	if err := a.decode(&wire); err != nil {
		return err
	}
	if !wire.Configured || wire.Queue != o.Queue {
		return a.misfit("queue %q configured: %t", wire.Queue, wire.Configured)
	}
	return nil
}

// check: Queen answers 500 to a wrong option and takes negative numbers
// (measured 1.3.0).
func (o *QueueOptions) check() error {
	if err := checkQueue(o.Queue); err != nil {
		return err
	}
	if o.Lease < time.Second {
		return fmt.Errorf("queue %q: lease %v: must be at least 1s", o.Queue, o.Lease)
	}
	if o.RetryLimit < 0 || o.DedupWindow < 0 || o.Retention < 0 || o.CompletedRetention < 0 {
		return fmt.Errorf("queue %q: no option may be negative", o.Queue)
	}
	return nil
}

func (o *QueueOptions) append(dst []byte) []byte {
	dst = appendField(dst, `{"queue":`, o.Queue)
	dst = appendField(dst, `,"namespace":`, storable(o.Namespace))
	dst = appendField(dst, `,"task":`, storable(o.Task))
	dst = appendInt(dst, `,"mode":"replace","options":{"leaseTime":`, wholeSeconds(o.Lease))
	dst = appendInt(dst, `,"retryLimit":`, int64(o.RetryLimit))
	dst = appendInt(dst, `,"deadLetterQueue":true,"dlqAfterMaxRetries":true,"dedupWindowSeconds":`, secondsOrZero(o.DedupWindow))
	dst = strconv.AppendBool(append(dst, `,"retentionEnabled":`...), o.Retention > 0 || o.CompletedRetention > 0)
	dst = appendInt(dst, `,"retentionSeconds":`, secondsOrZero(o.Retention))
	dst = appendInt(dst, `,"completedRetentionSeconds":`, secondsOrZero(o.CompletedRetention))
	return append(dst, "}}"...)
}

func secondsOrZero(d time.Duration) int64 {
	if d == 0 {
		return 0
	}
	return wholeSeconds(d)
}

// Depth is the number of messages of queue that group has not consumed,
// leased ones included (measured 1.3.0). A group that never popped has
// consumed nothing. An unknown queue is an error that matches ErrNotFound.
func (c *Client) Depth(ctx context.Context, queue, group string) (int, error) {
	a, err := c.do(ctx, &call{method: "GET", path: "/api/v1/resources/queues/" + segment(queue) + "/depth", query: "group=" + url.QueryEscape(group), safe: true})
	if err != nil {
		return 0, err
	}
	var wire struct {
		Pending *int `json:"pending"`
	}
	if err := a.decode(&wire); err != nil {
		return 0, err
	}
	if wire.Pending == nil {
		return 0, a.misfit("no pending")
	}
	return *wire.Pending, nil
}

// QueueInfo is one queue that Queen has.
type QueueInfo struct {
	Name, Namespace, Task string
}

// Queues lists every queue, in Queen's order.
func (c *Client) Queues(ctx context.Context) ([]QueueInfo, error) {
	a, err := c.do(ctx, &call{method: "GET", path: "/api/v1/resources/queues", safe: true})
	if err != nil {
		return nil, err
	}
	var wire struct {
		Queues *[]struct {
			Name      string   `json:"name"`
			Namespace jsonText `json:"namespace"`
			Task      jsonText `json:"task"`
		} `json:"queues"`
	}
	if err := a.decode(&wire); err != nil {
		return nil, err
	}
	if wire.Queues == nil {
		return nil, a.misfit("no queues")
	}
	list := make([]QueueInfo, len(*wire.Queues))
	for i, q := range *wire.Queues {
		list[i] = QueueInfo{Name: q.Name, Namespace: string(q.Namespace), Task: string(q.Task)}
	}
	return list, nil
}
