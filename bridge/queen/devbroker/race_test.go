package devbroker_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// Producers and two groups of consumers at once, with nacks: no partition is
// ever leased twice within a group, order holds, and each group completes
// every message once.
func TestConcurrentConsumers(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]devbroker.Config{"memory": {}, "sqlite": {CacheBytes: 4 << 10}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "sqlite" {
				cfg.Dir = t.TempDir()
			}
			const producers, messages = 4, 150
			a := open(t, cfg)
			a.configure("q", obj{"retryLimit": 1 << 30})
			var wg sync.WaitGroup
			for n := range producers {
				wg.Go(func() {
					for i := range messages {
						a.push("q", fmt.Sprintf("p%d", n), fmt.Sprintf("p%d.%d", n, i))
					}
				})
			}
			for _, group := range []string{"g", "h"} {
				w := &watch{t: t, api: a, group: group, held: map[string]bool{}, next: map[string]int{}, left: producers * messages}
				for range 4 {
					wg.Go(w.consume)
				}
			}
			wg.Wait()
		})
	}
}

// watch checks what the consumers of one group see.
type watch struct {
	t     *testing.T
	api   *api
	group string

	mu   sync.Mutex
	held map[string]bool
	next map[string]int // first message of a partition not completed
	left int
}

func (w *watch) consume() {
	for {
		w.mu.Lock()
		left := w.left
		w.mu.Unlock()
		if left <= 0 || w.t.Failed() {
			return
		}
		p := w.api.pop("/queue/q", w.group, "batch=7&partitions=2&wait=true&timeout=50")
		w.take(p)
		for len(p.Messages) > 0 {
			p.Messages = w.settle(p)
		}
	}
}

// take notes the partitions of a delivery as held.
func (w *watch) take(p popped) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, m := range p.Messages {
		if i == 0 || p.Messages[i-1].PartitionID != m.PartitionID {
			if w.held[m.PartitionID] {
				w.t.Errorf("%s: partition %s leased twice", w.group, m.Partition)
			}
			w.held[m.PartitionID] = true
		}
	}
}

// settle acks the first partition of a delivery, nacking at random, and
// returns the rest.
func (w *watch) settle(p popped) []message {
	one := popped{LeaseID: p.LeaseID, PartitionID: p.Messages[0].PartitionID}
	n := 0
	for n < len(p.Messages) && p.Messages[n].PartitionID == one.PartitionID {
		n++
	}
	nack := rand.IntN(2 * n)
	var acks []string
	w.mu.Lock()
	for i, m := range p.Messages[:n] {
		want := fmt.Sprintf("%s.%d", m.Partition, w.next[m.Partition]+i)
		if m.TransactionID != want {
			w.t.Errorf("%s: got %s, want %s", w.group, m.TransactionID, want)
		}
		word := "completed"
		if i == nack {
			word = "failed"
		}
		acks = append(acks, m.TransactionID+" "+word)
	}
	done := min(nack, n)
	w.next[p.Messages[0].Partition] += done
	w.left -= done
	delete(w.held, one.PartitionID)
	w.mu.Unlock()
	for i, v := range w.api.ack(one, w.group, acks...) {
		if v != "ok" {
			w.t.Errorf("%s: ack %s = %s", w.group, acks[i], v)
		}
	}
	return p.Messages[n:]
}

// Of several copies of one settle sent at once exactly one commits.
func TestSimultaneousSettles(t *testing.T) {
	t.Parallel()
	a := open(t, devbroker.Config{Dir: t.TempDir()})
	a.push("q", "p", "m1", "m2")
	p := a.pop("/queue/q", "g", "")
	ack := func(id string) obj {
		return obj{"type": "ack", "transactionId": id, "partitionId": p.PartitionID, "leaseId": p.LeaseID, "consumerGroup": "g", "status": "completed"}
	}
	bundle := obj{"operations": []obj{ack("m1"), ack("m2")}, "kv": []obj{{"op": "incr", "ns": "n", "key": "c", "delta": 1, "forever": true}}}
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for range 4 {
		wg.Go(func() {
			if a.transact(bundle)["success"] == true {
				mu.Lock()
				won++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d copies committed, want 1", won)
	}
}

// Of several pushes of one id at once exactly one is queued.
func TestSimultaneousPushes(t *testing.T) {
	t.Parallel()
	a := open(t, devbroker.Config{Dir: t.TempDir()})
	var wg sync.WaitGroup
	verdicts := make([]string, 8)
	for i := range verdicts {
		wg.Go(func() { verdicts[i] = a.push("q", "p", "one")[0] })
	}
	wg.Wait()
	queued := 0
	for _, v := range verdicts {
		if v == "queued" {
			queued++
		}
	}
	if queued != 1 {
		t.Errorf("verdicts = %v, want one queued", verdicts)
	}
}
