package queen_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// shelf is a Pusher that keeps items in memory and dedups per partition as
// Queen does. It stands in where a test must see or disturb single pushes.
type shelf struct {
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
	at     []time.Time
	known  map[[2]string]bool
}

func (s *shelf) Push(ctx context.Context, items []queen.Item) ([]queen.PushVerdict, error) {
	s.mu.Lock()
	s.pushes, s.at = append(s.pushes, copyItems(items)), append(s.at, time.Now())
	s.mu.Unlock()
	if s.before != nil {
		if err := s.before(ctx, items); err != nil {
			return nil, err
		}
	}
	verdicts := s.store(items)
	if s.after != nil {
		if err := s.after(items); err != nil {
			return nil, err
		}
	}
	return verdicts, nil
}

func (s *shelf) store(items []queen.Item) []queen.PushVerdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = make(map[[2]string]bool)
	}
	verdicts := make([]queen.PushVerdict, len(items))
	for i, item := range copyItems(items) {
		key := [2]string{item.Partition, item.TransactionID}
		switch {
		case s.verdict != nil && s.verdict(item) != "":
			verdicts[i].Status = s.verdict(item)
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

// stored returns the ids of what is stored, in order.
func (s *shelf) stored() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return idsOf(s.items)
}

// sizes are the items of every push, in the order in which they began.
func (s *shelf) sizes() (sizes []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pushes {
		sizes = append(sizes, len(p))
	}
	return sizes
}

// push returns the ids of the i'th push.
func (s *shelf) push(i int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return idsOf(s.pushes[i])
}

func idsOf(items []queen.Item) (ids []string) {
	for _, item := range items {
		ids = append(ids, item.TransactionID)
	}
	return ids
}

// held makes every push wait until leave is closed, or for its context.
func held(leave <-chan struct{}) func(context.Context, []queen.Item) error {
	return func(ctx context.Context, _ []queen.Item) error {
		select {
		case <-leave:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var errAway = errors.New("queen is away")

func newBuffer(t testing.TB, s *shelf, cfg queen.BufferConfig) *queen.Buffer {
	t.Helper()
	cfg.Pusher, cfg.Queue = s, "q"
	b, err := queen.NewBuffer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = b.Close(ended)
	})
	return b
}

// atOnce is a buffer without linger, as the ingress has.
func atOnce(t testing.TB, s *shelf, cfg queen.BufferConfig) *queen.Buffer {
	cfg.Linger, cfg.RetryMax = -1, 4*time.Second
	return newBuffer(t, s, cfg)
}

func item(id, partition string) queen.Item {
	return queen.Item{Queue: "q", Partition: partition, TransactionID: id, Payload: []byte(`{}`)}
}

func bundle(items ...queen.Item) *queen.Bundle {
	g := queen.NewBundle()
	for _, it := range items {
		*g.Add() = it
	}
	return g
}

// crowd submits bundles side by side, each within 5 seconds.
type crowd struct {
	*queen.Buffer
	wg      sync.WaitGroup
	results []*queen.BundleResult
}

// submit starts a bundle of one and waits until it waits.
func (c *crowd) submit(id, partition string) *queen.BundleResult {
	r := new(queen.BundleResult)
	c.results = append(c.results, r)
	c.wg.Go(func() { *r = c.Submit(bundle(item(id, partition)), time.Now().Add(5*time.Second)) })
	synctest.Wait()
	return r
}

// check waits for all and checks that each came to want.
func (c *crowd) check(t *testing.T, want queen.BundleResult) {
	t.Helper()
	c.wg.Wait()
	for i, r := range c.results {
		if *r != want {
			t.Errorf("bundle %d: result %d, want %d", i, *r, want)
		}
	}
}

func numbered(prefix string, n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("%s%03d", prefix, i))
	}
	return ids
}

// answeringPushes makes a client of a broker that queues every item.
func answeringPushes(t *testing.T) (*queen.Client, *broker) {
	t.Helper()
	b := newBroker(t, func(w http.ResponseWriter, r *http.Request) {
		var verdicts []map[string]string
		for range pushedItems(t, r.Body) {
			verdicts = append(verdicts, map[string]string{"status": "queued"})
		}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(verdicts)
	})
	return client(t, queen.Config{URLs: []string{b.URL}}), b
}

// pushed lists what came in all pushes, in order.
func (b *broker) pushed(t *testing.T) (items []queen.Item) {
	t.Helper()
	for _, r := range b.requests() {
		items = append(items, pushedItems(t, strings.NewReader(r.body))...)
	}
	return items
}

func pushedItems(t *testing.T, body io.Reader) (items []queen.Item) {
	var wire struct {
		Items []queen.Item `json:"items"`
	}
	if err := json.NewDecoder(body).Decode(&wire); err != nil {
		t.Error(err)
	}
	return wire.Items
}
