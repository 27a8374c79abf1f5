package queentest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// Shelf is a queen.Pusher that keeps items in memory and dedups per queue and
// partition as Queen does. It stands in where a test must see or disturb single
// pushes. Set its fields before it is used; it is then safe for concurrent use.
type Shelf struct {
	// Before is asked before each push: an error makes the push fail without
	// storing anything. Nil: nothing is asked.
	Before func(ctx context.Context, items []queen.Item) error
	// After is asked when the items are stored: an error is a lost reply.
	After func(items []queen.Item) error
	// Verdict replaces the verdict on an item that is then not stored; "" does
	// not.
	Verdict func(item queen.Item) queen.PushStatus

	mu     sync.Mutex
	items  []queen.Item
	pushes [][]queen.Item
	begun  []time.Time
	known  map[[3]string]bool
}

var _ queen.Pusher = (*Shelf)(nil)

// Push stores items, once for each transaction id of a partition.
func (s *Shelf) Push(ctx context.Context, items []queen.Item) ([]queen.PushVerdict, error) {
	s.mu.Lock()
	s.pushes, s.begun = append(s.pushes, copyItems(items)), append(s.begun, time.Now())
	s.mu.Unlock()
	if s.Before != nil {
		if err := s.Before(ctx, items); err != nil {
			return nil, err
		}
	}
	verdicts := s.store(items)
	if s.After != nil {
		if err := s.After(items); err != nil {
			return nil, err
		}
	}
	return verdicts, nil
}

func (s *Shelf) store(items []queen.Item) []queen.PushVerdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = make(map[[3]string]bool)
	}
	verdicts := make([]queen.PushVerdict, len(items))
	for i, item := range copyItems(items) {
		key := [3]string{item.Queue, item.Partition, item.TransactionID}
		switch {
		case s.Verdict != nil && s.Verdict(item) != "":
			verdicts[i].Status = s.Verdict(item)
		case s.known[key]:
			verdicts[i].Status = queen.PushDuplicate
		default:
			verdicts[i].Status = queen.PushQueued
			s.known[key] = true
			s.items = append(s.items, item)
		}
	}
	return verdicts
}

// copyItems copies the payloads too: the pusher may use them again.
func copyItems(items []queen.Item) []queen.Item {
	out := slices.Clone(items)
	for i := range out {
		out[i].Payload = slices.Clone(out[i].Payload)
	}
	return out
}

// Items are what is stored, in order.
func (s *Shelf) Items() []queen.Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.items)
}

// Pushes are the items of every push, in the order in which they began.
func (s *Shelf) Pushes() [][]queen.Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.pushes)
}

// Begun is when each push began.
func (s *Shelf) Begun() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.begun)
}
