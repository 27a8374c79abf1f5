package queen

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Unresolvable says that the broker does not know the transaction id (any
// more): 1.x forgets ids, also of pending messages (queen-contract.md §5.2).
func (v AckVerdict) Unresolvable() bool { return containsFold(v.Error, "unresolvable") }

// Temporary says that the broker could not look: its database was away. The
// same ack may succeed while the lease lives (measured 1.3.0).
func (v AckVerdict) Temporary() bool {
	return !v.Success && (v.Error == "pool" || strings.HasPrefix(v.Error, "ack flush failed"))
}

// Ack settles one message. The verdict counts, not the nil error.
func (c *Client) Ack(ctx context.Context, ack Ack) (AckVerdict, error) {
	if err := ack.check(); err != nil {
		return AckVerdict{}, fmt.Errorf("ack: %w", err)
	}
	body := c.pooled(append(appendAck(append(c.buffer(), '{'), &ack, true), '}'))
	defer body.release()
	verdicts, err := c.ackCall(ctx, "/api/v1/ack", body, []Ack{ack})
	if err != nil {
		return AckVerdict{}, err
	}
	return verdicts[0], nil
}

// AckBatch settles messages in one call and returns one verdict per ack, in
// order; each counts on its own. Queen decides per partition and lease: the
// completed prefix counts, the first nack releases the lease and what follows
// it comes again (queen-contract.md §5.2).
//
// Acks of several groups or leases of several nodes go in one call each; if
// one of those fails, the error is returned beside the verdicts of the others
// (the missing ones have Error "not answered").
func (c *Client) AckBatch(ctx context.Context, acks []Ack) ([]AckVerdict, error) {
	for i := range acks {
		if err := acks[i].check(); err != nil {
			return nil, fmt.Errorf("ack batch: ack %d: %w", i, err)
		}
	}
	verdicts := make([]AckVerdict, len(acks))
	var errs []error
	for _, part := range ackParts(acks) {
		answered, err := c.ackPart(ctx, acks, part)
		errs = append(errs, err)
		for j, i := range part {
			verdicts[i] = AckVerdict{Error: "not answered"}
			if err == nil {
				verdicts[i] = answered[j]
			}
		}
	}
	return verdicts, errors.Join(errs...)
}

// ackParts lists the indices of acks that may share a call, parts in order of
// their first ack.
func ackParts(acks []Ack) [][]int {
	type key struct{ group, node string }
	at := map[key]int{}
	var parts [][]int
	for i := range acks {
		k := key{acks[i].Lease.Group, acks[i].Lease.Node}
		n, ok := at[k]
		if !ok {
			n = len(parts)
			at[k], parts = n, append(parts, nil)
		}
		parts[n] = append(parts[n], i)
	}
	return parts
}

func (c *Client) ackPart(ctx context.Context, acks []Ack, part []int) ([]AckVerdict, error) {
	sent := make([]Ack, 0, len(part))
	buf := appendField(c.buffer(), `{"consumerGroup":`, acks[part[0]].Lease.Group)
	buf = append(buf, `,"acknowledgments":[`...)
	for _, i := range part {
		if len(sent) > 0 {
			buf = append(buf, ',')
		}
		buf = append(appendAck(append(buf, '{'), &acks[i], false), '}')
		sent = append(sent, acks[i])
	}
	body := c.pooled(append(buf, "]}"...))
	defer body.release()
	return c.ackCall(ctx, "/api/v1/ack/batch", body, sent)
}

func (c *Client) ackCall(ctx context.Context, path string, body *payload, acks []Ack) ([]AckVerdict, error) {
	a, err := c.do(ctx, &call{method: "POST", path: path, body: body, node: acks[0].Lease.Node})
	if err != nil {
		return nil, err
	}
	var rows []struct {
		TransactionID *string  `json:"transactionId"`
		Success       bool     `json:"success"`
		Noop          bool     `json:"noop"`
		Error         jsonText `json:"error"`
	}
	if err := a.decode(&rows); err != nil {
		return nil, err
	}
	if len(rows) != len(acks) {
		return nil, a.misfit("%d verdicts for %d acks", len(rows), len(acks))
	}
	verdicts := make([]AckVerdict, len(rows))
	for i, ack := range acks {
		row := &rows[i]
		if row.TransactionID != nil && *row.TransactionID != ack.TransactionID {
			return nil, a.misfit("verdict %d is of another message", i)
		}
		verdicts[i] = AckVerdict{Success: row.Success, Noop: row.Noop, Error: a.foreign(string(row.Error))}
	}
	return verdicts, nil
}

// check refuses an ack that Queen would take without a fence, or take for
// something else.
func (a *Ack) check() error {
	switch a.Status {
	case AckCompleted, AckFailed, AckRetry, AckDLQ:
	default:
		return fmt.Errorf("status %q is none", string(a.Status))
	}
	switch {
	case a.PartitionID == "": // an empty transaction id is an id like any other (measured 1.3.0)
		return errors.New("the partition id is needed")
	case a.Lease.ID == "" || a.Lease.Group == "":
		return errors.New("lease and group are needed: without them the ack is not fenced")
	}
	return nil
}

// appendAck appends an ack's fields, without braces.
func appendAck(dst []byte, a *Ack, group bool) []byte {
	dst = appendField(dst, `"transactionId":`, storable(a.TransactionID))
	dst = appendField(dst, `,"partitionId":`, storable(a.PartitionID))
	dst = appendField(dst, `,"leaseId":`, storable(a.Lease.ID))
	if group {
		dst = appendField(dst, `,"consumerGroup":`, storable(a.Lease.Group))
	}
	dst = appendField(dst, `,"status":`, string(a.Status))
	if a.Error != "" {
		dst = appendField(dst, `,"error":`, storable(a.Error))
	}
	return dst
}
