package queen

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// pushVerdicts reads the answer of a push, one verdict for each item in order.
func pushVerdicts(a *answer, items []Item) ([]PushVerdict, error) {
	if !a.ok() {
		return nil, a.statusError()
	}
	d := verdictDecoder{popDecoder: newPopDecoder(a.body), items: items, other: -1, verdicts: make([]PushVerdict, 0, len(items))}
	err := d.array(d.verdict)
	if err == nil {
		if _, end := d.ReadToken(); !errors.Is(end, io.EOF) {
			err = errors.New("bytes after the answer")
		}
	}
	switch {
	case err != nil:
		return nil, a.badBody(err)
	case d.other >= 0:
		return nil, a.misfit("verdict %d is of another item", d.other)
	case len(d.verdicts) != len(items):
		return nil, a.misfit("%d verdicts for %d items", len(d.verdicts), len(items))
	}
	for i := range d.verdicts {
		d.verdicts[i].Error = a.foreign(d.verdicts[i].Error)
	}
	return d.verdicts, nil
}

// verdictDecoder reads by hand what every event of an ingress waits for.
type verdictDecoder struct {
	*popDecoder
	items    []Item
	verdicts []PushVerdict
	other    int // the verdict of another item than the one asked for, or -1
}

// verdict reads one element of a push answer (mixed casing is the contract).
func (d *verdictDecoder) verdict() error {
	at := len(d.verdicts)
	v := PushVerdict{Status: PushError}
	err := d.object(func(name string) (err error) {
		if d.PeekKind() == 'n' { // as good as absent
			return d.SkipValue()
		}
		switch name {
		case "index":
			var index int
			if index, err = d.count(); index != at {
				d.other = at
			}
		case "message_id":
			v.MessageID, err = d.text("")
		case "transaction_id":
			var id, asked string
			if at < len(d.items) {
				asked = d.items[at].TransactionID
			}
			if id, err = d.text(asked); id != asked {
				d.other = at
			}
		case "status":
			var word string
			word, err = d.text(string(PushQueued))
			v.Status = pushStatus(word)
		case "error":
			v.Error, err = d.anyText()
		default:
			return d.SkipValue()
		}
		return err
	})
	d.verdicts = append(d.verdicts, v)
	return err
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
