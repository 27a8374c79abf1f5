package queen_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// A node that takes connections and says nothing would else cost every caller
// its whole time.
func TestAHangingNodeIsPassedOverThoughItsCallersGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes, c := newCluster(t, queen.StrategyRoundRobin)
		nodes.set("hang", "a", "b", "c")
		push := func(time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			_, _ = c.Push(ctx, items("a"))
		}
		push(3 * time.Second)
		nodes.set("", "b", "c")
		for range 3 {
			_ = pop(t, c)
		}
		if asked := nodes.take(); asked[0] != "a" || slices.Contains(asked[1:], "a") {
			t.Errorf("asked %v; want a once", asked)
		}
	})
}

// A caller that goes away, or a poll that waits, tells nothing about the node.
func TestACancelledCallTellsNothingAboutItsNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes, c := newCluster(t, queen.StrategyRoundRobin)
		nodes.set("hang", "a", "b", "c")
		poll := popRequest()
		poll.Wait = time.Minute
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			_, err := c.Pop(ctx, poll)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Pop() = %v; want the caller's deadline", err)
			}
		}
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, _ = c.Push(ctx, items("a"))
			cancel()
		}
		if d := cmp.Diff([]string{"a", "b", "c", "a", "b", "c"}, nodes.take()); d != "" {
			t.Error(d)
		}
	})
}

// A poll that ran out is not repeated elsewhere: its wait is over.
func TestAPollWhoseTimeIsOverIsNotRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes, c := newCluster(t, queen.StrategyRoundRobin)
		nodes.set("hang", "a", "b", "c")
		poll := popRequest()
		poll.Wait = 30 * time.Second
		start := time.Now()
		if _, err := c.Pop(t.Context(), poll); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Pop() = %v; want a deadline", err)
		}
		if took := time.Since(start); took != 35*time.Second || len(nodes.take()) != 1 {
			t.Errorf("gave up after %v; want one try of 35s", took)
		}
	})
}

// The lease counts from the request that got it, not from an earlier one.
func TestAskedIsTheTimeOfTheRequestThatWasAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes, c := newCluster(t, queen.StrategyRoundRobin)
		nodes.set("hang", "a")
		start := time.Now()
		p, err := c.Pop(t.Context(), popRequest())
		if err != nil || p.Asked.Sub(start) != 5*time.Second {
			t.Errorf("Pop() = asked after %v, %v; want 5s, when b was asked", p.Asked.Sub(start), err)
		}
	})
}

// Over the network: real servers, one killed while it holds a request.
func TestFailoverOverTheNetwork(t *testing.T) {
	t.Parallel()
	var first *broker
	first = newBroker(t, func(http.ResponseWriter, *http.Request) { first.CloseClientConnections() })
	second := newBroker(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `[{"status":"duplicate"}]`)
	})
	c := client(t, queen.Config{URLs: []string{first.URL, second.URL}})
	for range 3 {
		verdicts, err := c.Push(t.Context(), items("a"))
		if err != nil || verdicts[0].Status != queen.PushDuplicate {
			t.Fatalf("Push() = %v, %v; want the second node's verdict", verdicts, err)
		}
	}
	if n, m := len(first.requests()), len(second.requests()); n != 1 || m != 3 {
		t.Errorf("%d and %d requests; want 1 and 3", n, m)
	}
	for i, r := range second.requests() {
		if r.body != first.requests()[0].body {
			t.Errorf("request %d has another body: %s", i, r.body)
		}
	}
}

// nodesOf are servers in front of one broker, as the nodes of a cluster are.
func nodesOf(t *testing.T, n int) (servers []*httptest.Server, urls []string) {
	t.Helper()
	b, err := devbroker.Open(devbroker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	for range n {
		s := httptest.NewServer(b)
		t.Cleanup(s.Close)
		servers, urls = append(servers, s), append(urls, s.URL)
	}
	return servers, urls
}

// A node dies while a buffer pushes and a consumer pops and acks: nothing is
// lost, nothing is stored twice, and no caller sees an error of a call that
// may be repeated.
func TestANodeThatDiesLosesNothing(t *testing.T) {
	t.Parallel()
	for _, strategy := range []queen.Strategy{queen.StrategyAffinity, queen.StrategyRoundRobin, queen.StrategySession} {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel()
			servers, urls := nodesOf(t, 3)
			c := client(t, queen.Config{URLs: urls, Strategy: strategy})
			buffer, err := queen.NewBuffer(queen.BufferConfig{Pusher: c, Queue: "q", MaxItems: 10, Linger: -1})
			if err != nil {
				t.Fatal(err)
			}
			const total = 600
			var work sync.WaitGroup
			work.Go(func() {
				for i, id := range numbered("", total) {
					if err := buffer.Add(t.Context(), item(id, fmt.Sprint("p", i%7))); err != nil {
						t.Error(err)
					}
					switch i {
					case total / 3:
						servers[0].CloseClientConnections()
					case total / 2: // and two of three nodes are gone
						for _, s := range servers[:2] {
							s.CloseClientConnections()
							work.Go(s.Close)
						}
					}
				}
				if err := buffer.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
			seen := consume(t, c, total)
			work.Wait()
			for id, n := range seen {
				if n > 2 { // one lost pop or ack answer may bring it again
					t.Errorf("%s came %d times", id, n)
				}
			}
			if depth, err := c.Depth(t.Context(), "q", "g"); err != nil || depth != 0 {
				t.Errorf("Depth() = %d, %v; want everything consumed", depth, err)
			}
		})
	}
}

// consume pops and acks until n different messages are acked.
func consume(t *testing.T, c *queen.Client, n int) map[string]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	seen, settled := map[string]int{}, map[string]bool{}
	for len(settled) < n {
		p, err := c.Pop(ctx, queen.PopRequest{Queue: "q", Group: "g", Batch: 50, Partitions: 3, Wait: time.Second,
			Lease: 2 * time.Second, SubscriptionMode: "all"})
		if ctx.Err() != nil {
			t.Fatalf("%d of %d messages after a minute", len(settled), n)
		}
		if err != nil { // a pop goes on to the next node
			t.Errorf("Pop() = %v", err)
			continue
		}
		var acks []queen.Ack
		for _, m := range p.Messages {
			seen[m.TransactionID]++
			acks = append(acks, queen.Ack{TransactionID: m.TransactionID, PartitionID: m.PartitionID, Lease: p.Lease, Status: queen.AckCompleted})
		}
		verdicts, err := c.AckBatch(ctx, acks)
		if err != nil && !queen.Uncertain(err) {
			t.Errorf("AckBatch() = %v; want a verdict or an uncertain error", err)
		}
		for i, v := range verdicts {
			if v.Success {
				settled[acks[i].TransactionID] = true
			} else if err != nil {
				break // it comes again when its lease ends, or was acked
			}
		}
		if err != nil {
			again(ctx, c, acks, settled)
		}
	}
	return seen
}

// again sends acks whose answer was lost once more: what was acked then is no
// success any more, but settled.
func again(ctx context.Context, c *queen.Client, acks []queen.Ack, settled map[string]bool) {
	verdicts, err := c.AckBatch(ctx, acks)
	for i, v := range verdicts {
		if err == nil && (v.Success || v.Noop || v.Error != "") {
			settled[acks[i].TransactionID] = true
		}
	}
}
