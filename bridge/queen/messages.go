package queen

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// StoredMessage is a message as Queen keeps it, whoever consumed it.
type StoredMessage struct {
	ID            string
	TransactionID string
	Queue         string
	Partition     string
	PartitionID   string
	// Status is pending, processing, completed or dead_letter.
	Status    string
	CreatedAt time.Time
	// Data is re-encoded JSON, null where that cannot be done (measured 1.3.0).
	Data json.RawMessage
}

// Message reads the newest message with a transaction id in a partition. It is
// found as long as it is stored, also after Queen forgot its id for acks; gone
// is an error that matches ErrNotFound.
//
// Queen answers with the payload twice, so one of more than half of
// Config.MaxAnswer cannot be read.
func (c *Client) Message(ctx context.Context, partitionID, txn string) (StoredMessage, error) {
	if partitionID == "" || txn == "" {
		return StoredMessage{}, errors.New("read message: partition id and transaction id are needed")
	}
	a, err := c.do(ctx, &call{method: "GET", path: "/api/v1/messages/" + segment(partitionID) + "/" + segment(txn), safe: true})
	if err != nil {
		return StoredMessage{}, err
	}
	var wire struct {
		ID            string          `json:"id"`
		TransactionID string          `json:"transactionId"`
		Queue         string          `json:"queue"`
		Partition     string          `json:"partition"`
		PartitionID   string          `json:"partitionId"`
		Status        string          `json:"status"`
		CreatedAt     string          `json:"createdAt"`
		Data          json.RawMessage `json:"data"`
	}
	if err := a.decode(&wire); err != nil {
		return StoredMessage{}, err
	}
	if wire.TransactionID != txn || wire.Data == nil {
		return StoredMessage{}, a.misfit("it is no message with that id and data")
	}
	return StoredMessage{ID: wire.ID, TransactionID: wire.TransactionID, Queue: wire.Queue, Partition: wire.Partition,
		PartitionID: wire.PartitionID, Status: wire.Status, CreatedAt: wireTime(wire.CreatedAt), Data: wire.Data}, nil
}

// Partitions maps the names of a queue's partitions to their ids. A partition
// that retention emptied comes back under another id. An unknown queue is an
// error that matches ErrNotFound.
func (c *Client) Partitions(ctx context.Context, queue string) (map[string]string, error) {
	a, err := c.do(ctx, &call{method: "GET", path: "/api/v1/resources/queues/" + segment(queue), safe: true})
	if err != nil {
		return nil, err
	}
	var wire struct {
		Partitions *[]struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		} `json:"partitions"`
	}
	if err := a.decode(&wire); err != nil {
		return nil, err
	}
	if wire.Partitions == nil {
		return nil, a.misfit("no partitions")
	}
	ids := make(map[string]string, len(*wire.Partitions))
	for _, p := range *wire.Partitions {
		if p.ID == "" {
			return nil, a.misfit("a partition without an id")
		}
		ids[p.Name] = p.ID
	}
	return ids, nil
}
