package queen

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
)

// DeadLetters lists rows of Queen's DLQ, newest first. Their Data is
// re-encoded JSON (measured 1.3.0).
func (c *Client) DeadLetters(ctx context.Context, q DeadLetterQuery) ([]DeadLetter, error) {
	if q.Limit <= 0 {
		q.Limit = 100
	}
	query := appendQuery(nil, "queue=", q.Queue)
	query = appendQuery(query, "consumerGroup=", q.Group)
	query = appendQuery(query, "limit=", strconv.Itoa(q.Limit))
	query = appendQuery(query, "offset=", strconv.Itoa(max(q.Offset, 0)))
	a, err := c.do(ctx, &call{method: "GET", path: "/api/v1/dlq", query: string(query), safe: true})
	if err != nil {
		return nil, err
	}
	var wire struct {
		Messages *[]deadLetterRow `json:"messages"`
	}
	if err := a.decode(&wire); err != nil {
		return nil, err
	}
	if wire.Messages == nil {
		return nil, a.misfit("no messages")
	}
	letters := make([]DeadLetter, 0, len(*wire.Messages))
	for _, r := range *wire.Messages {
		letters = append(letters, r.deadLetter())
	}
	return letters, nil
}

type deadLetterRow struct {
	ID            string          `json:"id"`
	TransactionID string          `json:"transactionId"`
	PartitionID   string          `json:"partitionId"`
	Queue         string          `json:"queue"`
	Partition     string          `json:"partition"`
	ConsumerGroup string          `json:"consumerGroup"`
	ErrorMessage  jsonText        `json:"errorMessage"`
	RetryCount    int             `json:"retryCount"`
	Data          json.RawMessage `json:"data"`
	FailedAt      string          `json:"failedAt"`
}

func (r *deadLetterRow) deadLetter() DeadLetter {
	return DeadLetter{ID: r.ID, TransactionID: r.TransactionID, PartitionID: r.PartitionID, Queue: r.Queue,
		Partition: r.Partition, Group: r.ConsumerGroup, Error: string(r.ErrorMessage), RetryCount: r.RetryCount,
		Data: r.Data, FailedAt: wireTime(r.FailedAt)}
}

// DeleteDeadLetter deletes every DLQ row of an address (measured 1.3.0).
// Nothing there is an error that matches ErrNotFound.
func (c *Client) DeleteDeadLetter(ctx context.Context, partitionID, txn string) error {
	if partitionID == "" || txn == "" {
		return errors.New("delete dead letter: partition id and transaction id are needed")
	}
	a, err := c.do(ctx, &call{method: "DELETE", path: "/api/v1/messages/" + segment(partitionID) + "/" + segment(txn)})
	if err != nil {
		return err
	}
	return a.succeeded("success is not true")
}
