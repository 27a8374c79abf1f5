package queen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Trace is a note about a message, for whoever looks the message or one of the
// names up. Queen does not check that there is such a message, and 1.3.0 never
// deletes a note (read in its source).
type Trace struct {
	TransactionID string // at most 255 characters
	PartitionID   string
	Group         string
	Event         string // a word, such as retry; at most 100 characters
	Names         []string
	Data          json.RawMessage
}

// Trace stores a note. It is sent once: where the answer is lost it may have
// been stored.
func (c *Client) Trace(ctx context.Context, t Trace) error {
	if err := t.check(); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	buf := appendField(c.buffer(), `{"transactionId":`, t.TransactionID)
	buf = appendField(buf, `,"partitionId":`, t.PartitionID)
	buf = appendField(buf, `,"consumerGroup":`, t.Group)
	buf = appendField(buf, `,"eventType":`, t.Event)
	buf = append(buf, `,"traceNames":[`...)
	for i, name := range t.Names {
		comma := ","
		if i == 0 {
			comma = ""
		}
		buf = appendField(buf, comma, name)
	}
	buf = append(append(buf, `],"data":`...), t.Data...)
	body := c.pooled(append(buf, '}'))
	defer body.release()
	a, err := c.do(ctx, &call{method: "POST", path: "/api/v1/traces", body: body, tries: 1})
	if err != nil {
		return err
	}
	return a.succeeded("it is not stored")
}

// check refuses what Queen answers 500 (the columns of 1.3.0).
func (t *Trace) check() error {
	switch {
	case t.TransactionID == "" || t.PartitionID == "":
		return errors.New("transaction id and partition id are needed")
	case utf8.RuneCountInString(t.TransactionID) > 255 || utf8.RuneCountInString(t.Group) > 255 || utf8.RuneCountInString(t.Event) > 100:
		return errors.New("the transaction id or group is longer than 255 characters, or the event than 100")
	case strings.ContainsRune(t.TransactionID+t.Group+t.Event, 0):
		return errors.New("it holds a NUL, which Queen's database does not store")
	case !json.Valid(t.Data):
		return errors.New("the data is not JSON")
	}
	return nil
}
