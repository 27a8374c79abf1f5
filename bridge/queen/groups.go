package queen

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// GroupPartition is how far a group is in one partition.
type GroupPartition struct {
	Partition string
	// Pending messages are not consumed, leased ones included.
	Pending int64
	// Behind is how long ago the oldest of them was stored, in whole seconds by
	// Queen's clock; 0 where none is pending.
	Behind time.Duration
	// Leased says that somebody holds the partition, or its lease was
	// lengthened as a delay and nobody does.
	Leased bool
}

// GroupPartitions lists the partitions of a queue that a group has a position
// in: those there at its first pop, and those popped since. A group or queue
// that Queen does not know has none.
func (c *Client) GroupPartitions(ctx context.Context, group, queue string) ([]GroupPartition, error) {
	if group == "" || queue == "" {
		return nil, errors.New("list partitions of a group: group and queue are needed")
	}
	a, err := c.do(ctx, &call{method: "GET", path: "/api/v1/consumer-groups/" + segment(group), safe: true})
	if err != nil {
		return nil, err
	}
	var wire map[string]struct {
		Partitions *[]struct {
			Partition   *string `json:"partition"`
			OffsetLag   *int64  `json:"offsetLag"`
			TimeLag     *int64  `json:"timeLagSeconds"`
			LeaseActive *bool   `json:"leaseActive"`
		} `json:"partitions"`
	}
	if err := a.decode(&wire); err != nil {
		return nil, err
	}
	one, known := wire[queue]
	switch {
	case !known:
		return nil, nil
	case one.Partitions == nil:
		return nil, a.misfit("queue %q: no partitions", clip(queue, 64))
	}
	list := make([]GroupPartition, len(*one.Partitions))
	for i, p := range *one.Partitions {
		if p.Partition == nil || p.OffsetLag == nil || p.TimeLag == nil || p.LeaseActive == nil {
			return nil, a.misfit("partition %d lacks its name, lag or lease", i)
		}
		list[i] = GroupPartition{Partition: *p.Partition, Pending: *p.OffsetLag, Behind: time.Duration(*p.TimeLag) * time.Second, Leased: *p.LeaseActive}
	}
	return list, nil
}

// SeekRequest moves a group to where the first message stands that was stored
// at a time or later, by Queen's clock; behind the last one where there is
// none. Messages that were pushed in one request are not told apart.
type SeekRequest struct {
	Queue, Group string
	// Partition is the one to move in, "" each of the queue: also those where
	// the group has no position yet, which then begin there.
	Partition string
	At        time.Time
}

// Seek moves a group. It takes whatever lease there is, so that acks under way
// are refused, and resets the retry count (queen-contract.md §7.5). It may move
// forward: what was pending before the time is then not delivered. An unknown
// queue or partition is an error that matches ErrNotFound.
func (c *Client) Seek(ctx context.Context, s SeekRequest) error {
	if s.Queue == "" || s.Group == "" {
		return errors.New("seek: queue and group are needed")
	}
	path := "/api/v1/consumer-groups/" + segment(s.Group) + "/queues/" + segment(s.Queue)
	if s.Partition != "" {
		path += "/partitions/" + segment(s.Partition)
	}
	body := c.pooled(append(appendField(c.buffer(), `{"timestamp":`, s.At.UTC().Format("2006-01-02T15:04:05.000000Z")), '}'))
	defer body.release()
	a, err := c.do(ctx, &call{method: "POST", path: path + "/seek", body: body, safe: true})
	if err != nil {
		return fmt.Errorf("seek group %q of queue %q: %w", s.Group, s.Queue, err)
	}
	var wire struct {
		Success bool   `json:"success"`
		Queue   string `json:"queueName"`
		Group   string `json:"consumerGroup"`
	}
	if err := a.decode(&wire); err != nil {
		return err
	}
	if !wire.Success || wire.Queue != s.Queue || wire.Group != s.Group {
		return a.misfit("success %t for group %q of queue %q", wire.Success, clip(wire.Group, 64), clip(wire.Queue, 64))
	}
	return nil
}
