package queen_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// cluster is a transport to nodes that answer, fail, hang or cannot be
// dialled.
type cluster struct {
	mu    sync.Mutex
	asked []string
	state map[string]string // host -> "dial", "reset", "hang", "<status> <body>" or "" for good
}

func (c *cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.asked = append(c.asked, r.URL.Host)
	state := c.state[r.URL.Host]
	c.mu.Unlock()
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }()
	}
	switch state {
	case "":
		return response(r, 204, ""), nil
	case "dial":
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	case "reset":
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")}
	case "hang":
		return hang(r)
	}
	status, body, _ := strings.Cut(state, " ")
	res := response(r, 0, body)
	for _, digit := range status {
		res.StatusCode = res.StatusCode*10 + int(digit-'0')
	}
	return res, nil
}

// set gives hosts a new state.
func (c *cluster) set(state string, hosts ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range hosts {
		c.state[h] = state
	}
}

func (c *cluster) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked
	c.asked = nil
	return asked
}

func newCluster(t *testing.T, s queen.Strategy) (*cluster, *queen.Client) {
	nodes := &cluster{state: map[string]string{}}
	return nodes, client(t, queen.Config{URLs: []string{"http://a", "http://b", "http://c"}, Transport: nodes, Strategy: s})
}

func pop(t *testing.T, c *queen.Client) error {
	_, err := c.Pop(t.Context(), popRequest())
	return err
}

// ackOf acks a message of a lease without a node.
func ackOf(t *testing.T, c *queen.Client) error {
	a := ack("a", queen.AckCompleted)
	a.Lease.Node = ""
	_, err := c.Ack(t.Context(), a)
	return err
}

func TestNodesTakeTurns(t *testing.T) {
	t.Parallel()
	nodes, c := newCluster(t, queen.StrategyRoundRobin)
	for range 6 {
		if err := pop(t, c); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff([]string{"a", "b", "c", "a", "b", "c"}, nodes.take()); d != "" {
		t.Error(d)
	}
}

func TestFailedNodeIsPassedOverForFiveSeconds(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"500 {}", "502 <html>", `503 {"error":"not the leader","code":"no_leader"}`, "reset", "dial", "hang",
		"200 <html>sign in</html>", "200 ", "404 default backend", "200 \x1f\x8b\b", "201 OK"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				nodes, c := newCluster(t, queen.StrategyRoundRobin)
				nodes.set(how, "a")
				for range 4 { // a pop may be had twice: it goes on to b at once
					if err := pop(t, c); err != nil {
						t.Fatal(err)
					}
				}
				if d := cmp.Diff([]string{"a", "b", "b", "c", "b"}, nodes.take()); d != "" {
					t.Error(d)
				}
				time.Sleep(5 * time.Second)
				nodes.set("", "a")
				for range 3 {
					if err := pop(t, c); err != nil {
						t.Fatal(err)
					}
				}
				if asked := nodes.take(); !slices.Contains(asked, "a") {
					t.Errorf("after five seconds: asked %v, want a among them", asked)
				}
			})
		})
	}
}

// What one node may have seen is sent to another one only where it may be done
// twice.
func TestOnlySafeCallsGoOnToAnotherNode(t *testing.T) {
	t.Parallel()
	lease := queen.Lease{ID: "L", Group: "g"}
	tx := queen.Transaction{Pushes: items("a")}
	for _, tt := range []struct {
		name string
		safe bool
		call func(ctx context.Context, c *queen.Client) error
	}{
		{"pop", true, func(ctx context.Context, c *queen.Client) error { _, err := c.Pop(ctx, popRequest()); return err }},
		{"push", true, func(ctx context.Context, c *queen.Client) error { _, err := c.Push(ctx, items("a")); return err }},
		{"extend", true, func(ctx context.Context, c *queen.Client) error {
			_, err := c.Extend(ctx, lease, time.Minute)
			return err
		}},
		{"configure", true, func(ctx context.Context, c *queen.Client) error {
			return c.Configure(ctx, queen.QueueOptions{Queue: "q", Lease: time.Minute})
		}},
		{"depth", true, func(ctx context.Context, c *queen.Client) error { _, err := c.Depth(ctx, "q", "g"); return err }},
		{"dead letters", true, func(ctx context.Context, c *queen.Client) error {
			_, err := c.DeadLetters(ctx, queen.DeadLetterQuery{})
			return err
		}},
		{"timers", true, func(ctx context.Context, c *queen.Client) error {
			_, _, err := c.ListTimers(ctx, "q", "", 1)
			return err
		}},
		{"kv get", true, func(ctx context.Context, c *queen.Client) error {
			_, err := c.KV(ctx, []queen.KVOp{{Op: "get", Namespace: "n", Key: "k"}})
			return err
		}},
		{"kv get and put", false, func(ctx context.Context, c *queen.Client) error {
			_, err := c.KV(ctx, []queen.KVOp{{Op: "get", Namespace: "n", Key: "k"}, {Op: "put", Namespace: "n", Key: "k", Value: []byte("1")}})
			return err
		}},
		{"ack", false, func(ctx context.Context, c *queen.Client) error {
			a := ack("a", queen.AckCompleted)
			a.Lease.Node = ""
			_, err := c.Ack(ctx, a)
			return err
		}},
		{"transaction", false, func(ctx context.Context, c *queen.Client) error {
			p, err := tx.Prepare()
			if err == nil {
				_, err = c.Commit(ctx, p)
			}
			return err
		}},
		{"schedule", false, func(ctx context.Context, c *queen.Client) error {
			_, err := c.Schedule(ctx, []queen.Timer{{Queue: "q", Key: "k", Partition: "p", TransactionID: "t", Payload: []byte("1")}})
			return err
		}},
		{"cancel", false, func(ctx context.Context, c *queen.Client) error { _, err := c.CancelTimer(ctx, "q", "k"); return err }},
		{"delete dead letter", false, func(ctx context.Context, c *queen.Client) error { return c.DeleteDeadLetter(ctx, "p", "t") }},
	} {
		for _, how := range []string{`503 {"error":"?","code":"outcome_unknown"}`, "reset", "200 <html>"} {
			t.Run(tt.name+" "+how, func(t *testing.T) {
				t.Parallel()
				nodes, c := newCluster(t, queen.StrategyRoundRobin)
				nodes.set(how, "a", "b", "c")
				err := tt.call(t.Context(), c)
				if !queen.Uncertain(err) || !queen.Temporary(err) {
					t.Errorf("error = %v; want uncertain and temporary", err)
				}
				want := []string{"a", "b", "c"}
				if !tt.safe {
					want = want[:1]
				}
				if d := cmp.Diff(want, nodes.take()); d != "" {
					t.Error(d)
				}
				nodes.set("dial", "a", "b", "c")
				if err := tt.call(t.Context(), c); err == nil || queen.Uncertain(err) {
					t.Errorf("no node reached: error = %v; want a certain one", err)
				}
				if asked := nodes.take(); len(asked) != 3 {
					t.Errorf("no node reached: asked %v; want each once", asked)
				}
			})
		}
	}
}

// The last node could not be dialled, but the first may have stored the items.
func TestAnErrorIsUncertainIfAnyNodeMayHaveSeenTheCall(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"reset", "500 {}"} {
		nodes, c := newCluster(t, queen.StrategyRoundRobin)
		nodes.set("dial", "b", "c")
		nodes.set(how, "a")
		if _, err := c.Push(t.Context(), items("a")); !queen.Uncertain(err) {
			t.Errorf("%s: Push() error = %v; want an uncertain one", how, err)
		}
	}
}

func TestARefusalIsTheAnswerAndNoFailure(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{`400 {"error":"bad body"}`, `401 {"error":"Invalid token signature"}`,
		`403 {"error":"over quota","code":"quota_exceeded"}`, `404 {"error":"Not Found","code":"no_such_route"}`, `413 {}`,
		`503 {"error":"kv_disabled","reason":"paused"}`, `503 {"error":"timers_disabled","reason":"paused","detail":"by an operator"}`} {
		nodes, c := newCluster(t, queen.StrategyRoundRobin)
		nodes.set(answer, "a", "b", "c")
		for range 2 {
			var status *queen.StatusError
			if err := pop(t, c); !errors.As(err, &status) {
				t.Fatalf("Pop() = %v; want a *StatusError", err)
			}
		}
		nodes.set("", "a", "b", "c")
		if err := pop(t, c); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"a", "b", "c"}, nodes.take()); d != "" {
			t.Errorf("%s: %s", answer, d)
		}
	}
}

func TestForbiddenTellsItsCodeAndIsDenied(t *testing.T) {
	t.Parallel()
	nodes, c := newCluster(t, queen.StrategyRoundRobin)
	nodes.set(`403 {"error":"the cluster is suspended","code":"cluster_suspended"}`, "a", "b", "c")
	p := prepare(t, queen.Transaction{Pushes: items("a")})
	_, push := c.Push(t.Context(), items("a"))
	_, commit := c.Commit(t.Context(), p)
	for name, err := range map[string]error{"pop": pop(t, c), "push": push, "ack": ackOf(t, c), "transaction": commit} {
		var status *queen.StatusError
		if !errors.As(err, &status) || status.Code != "cluster_suspended" || !queen.Denied(err) || queen.Temporary(err) || queen.Uncertain(err) {
			t.Errorf("%s: error = %v; want denied, with its code", name, err)
		}
	}
	if asked := nodes.take(); len(asked) != 4 {
		t.Errorf("asked %v; want one request per call", asked)
	}
}

func TestUnreachableNodeIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	nodes, c := newCluster(t, queen.StrategyRoundRobin)
	nodes.set("dial", "a", "b")
	if err := ackOf(t, c); err == nil || queen.Temporary(err) && !queen.Uncertain(err) {
		t.Errorf("Ack() = %v; want the third node's answer", err)
	}
	if d := cmp.Diff([]string{"a", "b", "c"}, nodes.take()); d != "" {
		t.Error(d)
	}
	nodes.set("dial", "c")
	err := ackOf(t, c)
	if err == nil || queen.Uncertain(err) {
		t.Errorf("Ack() with every node away = %v; want a certain error", err)
	}
	nodes.set("", "a", "b", "c")
	if err := pop(t, c); err != nil {
		t.Errorf("Pop() = %v; want nodes that are down to be tried when there is no other", err)
	}
}

// The first node that answers again is the one to use.
func TestANodeThatAnswersIsUpAgain(t *testing.T) {
	t.Parallel()
	nodes, c := newCluster(t, queen.StrategyRoundRobin)
	nodes.set("dial", "a", "b", "c")
	_ = pop(t, c)
	nodes.set("", "a", "b", "c")
	nodes.take()
	for range 3 {
		if err := pop(t, c); err != nil {
			t.Fatal(err)
		}
	}
	if asked := nodes.take(); len(slices.Compact(asked)) != 1 {
		t.Errorf("asked %v; want the node that answered", asked)
	}
}

func TestLeasesStayWithTheirNode(t *testing.T) {
	t.Parallel()
	for _, strategy := range []queen.Strategy{queen.StrategyAffinity, queen.StrategyRoundRobin, queen.StrategySession} {
		nodes, c := newCluster(t, strategy)
		lease := queen.Lease{ID: "L", Group: "g", Node: "http://b"}
		a := ack("a", queen.AckCompleted)
		a.Lease = lease
		p := prepare(t, queen.Transaction{Acks: []queen.Ack{a}})
		calls := func() {
			for range 2 {
				_, _ = c.Extend(t.Context(), lease, time.Second)
				_, _ = c.Ack(t.Context(), a)
				_, _ = c.AckBatch(t.Context(), []queen.Ack{a})
				_, _ = c.Commit(t.Context(), p)
			}
		}
		calls()
		if d := cmp.Diff([]string{"b", "b", "b", "b", "b", "b", "b", "b"}, nodes.take()); d != "" {
			t.Errorf("%s: %s", strategy, d)
		}
		nodes.set("dial", "b")
		calls()
		if asked := nodes.take(); asked[0] != "b" || asked[len(asked)-1] == "b" {
			t.Errorf("%s: asked %v; want another node once b is away", strategy, asked)
		}
	}
}
