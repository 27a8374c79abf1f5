package ingress_test

import (
	"context"
	"sync"
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// fakeQueen stores items in memory and dedups per partition as Queen does. It
// stands in where a test must see or disturb single pushes; the end-to-end
// test uses the embedded broker.
type fakeQueen struct {
	// before is asked before each push: an error makes the push fail without
	// storing anything.
	before func(ctx context.Context, items []queen.Item) error
	// after is asked when the items are stored: an error is a lost reply.
	after func(items []queen.Item) error
	// verdict replaces the verdict on an item that is then not stored; "" does
	// not.
	verdict func(item queen.Item) queen.PushStatus

	mu     sync.Mutex
	items  []queen.Item
	pushes [][]queen.Item
	known  map[[3]string]bool
}

func (f *fakeQueen) Push(ctx context.Context, items []queen.Item) ([]queen.PushVerdict, error) {
	f.mu.Lock()
	f.pushes = append(f.pushes, copyItems(items))
	f.mu.Unlock()
	if f.before != nil {
		if err := f.before(ctx, items); err != nil {
			return nil, err
		}
	}
	verdicts := f.store(items)
	if f.after != nil {
		if err := f.after(items); err != nil {
			return nil, err
		}
	}
	return verdicts, nil
}

func (f *fakeQueen) store(items []queen.Item) []queen.PushVerdict {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil {
		f.known = make(map[[3]string]bool)
	}
	verdicts := make([]queen.PushVerdict, len(items))
	for i, item := range copyItems(items) {
		key := [3]string{item.Queue, item.Partition, item.TransactionID}
		switch {
		case f.verdict != nil && f.verdict(item) != "":
			verdicts[i].Status = f.verdict(item)
		case f.known[key]:
			verdicts[i].Status = queen.PushDuplicate
		default:
			verdicts[i].Status = queen.PushQueued
			f.known[key] = true
			f.items = append(f.items, item)
		}
	}
	return verdicts
}

// copyItems copies the payloads too: the pusher may use them again.
func copyItems(items []queen.Item) []queen.Item {
	out := make([]queen.Item, len(items))
	for i, item := range items {
		out[i] = item
		out[i].Payload = append([]byte(nil), item.Payload...)
	}
	return out
}

// stored returns what is stored, in order.
func (f *fakeQueen) stored() []queen.Item {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]queen.Item(nil), f.items...)
}

// calls returns the items of every push, in the order the pushes began.
func (f *fakeQueen) calls() [][]queen.Item {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([][]queen.Item(nil), f.pushes...)
}

// events decodes what is stored.
func (f *fakeQueen) events(t *testing.T) []bridge.Event {
	t.Helper()
	var out []bridge.Event
	for _, item := range f.stored() {
		e, ours, err := bridge.DecodeEvent(item.Payload)
		if err != nil || !ours {
			t.Fatalf("DecodeEvent(%s) = %v, ours %v", item.Payload, err, ours)
		}
		if e.ID != item.TransactionID {
			t.Errorf("event id %q, transaction id %q: want the same", e.ID, item.TransactionID)
		}
		out = append(out, e)
	}
	return out
}

// ids are the transaction ids of items.
func ids(items []queen.Item) []string {
	var out []string
	for _, item := range items {
		out = append(out, item.TransactionID)
	}
	return out
}
