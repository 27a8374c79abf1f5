package queen_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
)

// stored are the ids of what is stored, in order.
func stored(s *queentest.Shelf) []string { return idsOf(s.Items()) }

// sizes are how many items every push has, in the order in which they began.
func sizes(s *queentest.Shelf) (sizes []int) {
	for _, p := range s.Pushes() {
		sizes = append(sizes, len(p))
	}
	return sizes
}

// push are the ids of the i'th push.
func push(s *queentest.Shelf, i int) []string { return idsOf(s.Pushes()[i]) }

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

func newBuffer(t testing.TB, s *queentest.Shelf, cfg queen.BufferConfig) *queen.Buffer {
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
func atOnce(t testing.TB, s *queentest.Shelf, cfg queen.BufferConfig) *queen.Buffer {
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
