package queen

import (
	"context"
	"errors"
	"fmt"
)

// Push stores items and returns one verdict per item, in order. Each verdict
// counts on its own: a nil error does not mean that all were stored.
//
// The bytes of the payloads are copied as they are and not checked: one
// payload that is not JSON makes Queen refuse the whole push. Names that it
// would refuse or lose are refused here. A push may be repeated with the same
// ids: what was stored is `duplicate` then (within the dedup window).
func (c *Client) Push(ctx context.Context, items []Item) ([]PushVerdict, error) {
	if len(items) == 0 {
		return nil, nil
	}
	buf, err := appendPush(c.buffer(), items)
	body := c.pooled(buf)
	defer body.release()
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	a, err := c.do(ctx, &call{method: "POST", path: "/api/v1/push", body: body, safe: true})
	if err != nil {
		return nil, err
	}
	return pushVerdicts(a, items)
}

func appendPush(dst []byte, items []Item) ([]byte, error) {
	dst = append(dst, `{"items":`...)
	dst, err := appendItems(dst, items)
	return append(dst, '}'), err
}

// appendItems appends the array of items of a push or a push operation.
func appendItems(dst []byte, items []Item) ([]byte, error) {
	dst = append(dst, '[')
	for i := range items {
		if err := items[i].check(); err != nil {
			return dst, &itemError{index: i, err: err}
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = items[i].append(dst)
	}
	return append(dst, ']'), nil
}

// itemError is an item that Queen would refuse or lose.
type itemError struct {
	index int
	err   error
}

func (e *itemError) Error() string { return fmt.Sprintf("item %d: %v", e.index, e.err) }

func (e *itemError) Unwrap() error { return e.err }

func (it *Item) append(dst []byte) []byte {
	dst = appendField(dst, `{"queue":`, it.Queue)
	dst = appendField(dst, `,"partition":`, it.Partition)
	dst = appendField(dst, `,"transactionId":`, it.TransactionID)
	dst = append(append(dst, `,"payload":`...), it.Payload...)
	return append(dst, '}')
}

func (it *Item) check() error {
	var empty error
	if len(it.Payload) == 0 {
		empty = errors.New("payload is empty")
	}
	for _, err := range [...]error{checkQueue(it.Queue), checkText("partition", it.Partition), checkTransactionID(it.TransactionID), empty} {
		if err != nil {
			return err
		}
	}
	return nil
}

// pushRow is one element of a push answer (mixed casing is the contract).
type pushRow struct {
	Index         *int     `json:"index"`
	MessageID     string   `json:"message_id"`
	TransactionID *string  `json:"transaction_id"`
	Status        string   `json:"status"`
	Error         jsonText `json:"error"`
}

func pushVerdicts(a *answer, items []Item) ([]PushVerdict, error) {
	rows := make([]pushRow, 0, len(items))
	if err := a.decode(&rows); err != nil {
		return nil, err
	}
	if len(rows) != len(items) {
		return nil, a.misfit("%d verdicts for %d items", len(rows), len(items))
	}
	verdicts := make([]PushVerdict, len(rows))
	for i, row := range rows {
		if row.Index != nil && *row.Index != i || row.TransactionID != nil && *row.TransactionID != items[i].TransactionID {
			return nil, a.misfit("verdict %d is of another item", i)
		}
		verdicts[i] = PushVerdict{Status: pushStatus(row.Status), MessageID: row.MessageID, Error: a.foreign(string(row.Error))}
	}
	return verdicts, nil
}

// pushStatus takes a word nobody knows for an error: nothing is known to be
// stored.
func pushStatus(word string) PushStatus {
	switch s := PushStatus(word); s {
	case PushQueued, PushDuplicate, PushBuffered, PushFailed:
		return s
	}
	return PushError
}
