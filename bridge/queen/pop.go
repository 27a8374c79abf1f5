package queen

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Pop asks for messages. Nothing there is no error: Popped without Messages.
//
// The Data of one pop's messages share their memory with the answer: keeping
// one keeps all. A body that is not JSON is a *BadBodyError.
func (c *Client) Pop(ctx context.Context, r PopRequest) (Popped, error) {
	if err := r.check(); err != nil {
		return Popped{}, fmt.Errorf("pop: %w", err)
	}
	k := &call{method: "GET", path: r.path(), query: r.query(), key: r.affinity(), safe: true, timeout: r.Wait + popGrace}
	if r.Wait > 0 {
		k.tries = withoutEnd
	}
	a, err := c.do(ctx, k)
	if err != nil {
		r.locate(err)
		return Popped{}, err
	}
	if a.status == http.StatusNoContent { // 0.15 sends a body with it: not looked at
		return Popped{Asked: a.asked}, nil
	}
	p, err := r.read(a)
	p.Asked = a.asked
	return p, err
}

// locate tells what an answer too large leased, by its head.
func (r *PopRequest) locate(err error) {
	var bad *BadBodyError
	var large *oversize
	if errors.As(err, &bad) && errors.As(err, &large) && bad.Status == http.StatusOK {
		body, _ := decodePop(large.head)
		bad.show(body, Lease{ID: body.leaseID, Group: r.Group, Node: large.node})
		bad.Err = errTooLarge // the head has served
	}
}

// show fills in what was read of a pop.
func (e *BadBodyError) show(body popBody, lease Lease) {
	e.Lease, e.Partition, e.PartitionID, e.TransactionID = lease, body.partition, body.partitionID, body.firstTransactionID()
}

// read decodes a pop's answer.
func (r *PopRequest) read(a *answer) (Popped, error) {
	if !a.ok() {
		return Popped{}, a.statusError()
	}
	body, err := decodePop(a.body)
	if err != nil && r.Tolerant {
		if found, hopeless := decodePopTolerant(a.body); hopeless == nil {
			body, err = found, nil
		}
	}
	lease := Lease{ID: body.leaseID, Group: r.Group, Node: a.node}
	switch {
	case err != nil:
		bad := a.badBody(err)
		bad.show(body, lease)
		return Popped{}, bad
	case body.failed:
		return Popped{}, a.misfit("success is false: %s", a.foreign(body.err))
	case len(body.messages) == 0:
		return Popped{}, nil
	}
	return Popped{Lease: lease, Messages: body.messages}, nil
}

func (r *PopRequest) check() error {
	switch {
	case r.Group == "":
		return errors.New("group is empty")
	case r.Batch < 1 || r.Partitions < 0:
		return fmt.Errorf("batch %d, partitions %d: must be at least 1", r.Batch, r.Partitions)
	case r.Lease < time.Second:
		return fmt.Errorf("lease %v: must be at least 1s", r.Lease)
	case r.Wait < 0:
		return fmt.Errorf("wait %v: must not be negative", r.Wait)
	case r.SubscriptionMode != "all" && r.SubscriptionMode != "new": // any other word means all
		return fmt.Errorf("subscription mode %q: must be all or new", r.SubscriptionMode)
	case r.Tolerant && (r.Partition == "" || r.Batch != 1):
		return errors.New("a tolerant pop needs a partition and batch 1")
	case r.Queue == "" && r.Namespace == "" && r.Task == "":
		return errors.New("queue, namespace or task is needed")
	case r.Queue == "" && r.Partition != "":
		return errors.New("a partition needs its queue")
	case r.Queue != "" && (r.Namespace != "" || r.Task != ""):
		return errors.New("namespace and task need a pop without queue")
	}
	return r.checkFrom()
}

// checkFrom: what Queen cannot parse delivers nothing old, in silence
// (measured 1.3.0).
func (r *PopRequest) checkFrom() error {
	if r.SubscriptionFrom == "" {
		return nil
	}
	if _, err := time.Parse(time.RFC3339Nano, r.SubscriptionFrom); err != nil {
		return fmt.Errorf("subscription from %q: must be an RFC 3339 time", r.SubscriptionFrom)
	}
	return nil
}

func (r *PopRequest) path() string {
	switch {
	case r.Queue == "":
		return "/api/v1/pop"
	case r.Partition == "":
		return "/api/v1/pop/queue/" + segment(r.Queue)
	}
	return "/api/v1/pop/queue/" + segment(r.Queue) + "/partition/" + segment(r.Partition)
}

// query writes out every parameter that has a default: those differ between
// the generations (queen-contract.md §4).
func (r *PopRequest) query() string {
	b := make([]byte, 0, 256)
	if r.Queue == "" {
		b = appendQuery(b, "namespace=", r.Namespace)
		b = appendQuery(b, "task=", r.Task)
	}
	b = appendQuery(b, "consumerGroup=", r.Group)
	b = appendQuery(b, "subscriptionMode=", r.SubscriptionMode)
	b = appendQuery(b, "subscriptionFrom=", r.SubscriptionFrom)
	b = appendInt(b, "&batch=", int64(r.Batch))
	b = appendInt(b, "&partitions=", int64(max(r.Partitions, 1)))
	b = appendInt(b, "&leaseSeconds=", wholeSeconds(r.Lease))
	b = strconv.AppendBool(append(b, "&wait="...), r.Wait > 0)
	if r.Wait > 0 {
		b = appendInt(b, "&timeout=", max(1, r.Wait.Milliseconds()))
	}
	return string(b)
}

func appendQuery(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	if len(b) > 0 {
		b = append(b, '&')
	}
	return append(append(b, name...), url.QueryEscape(value)...)
}
