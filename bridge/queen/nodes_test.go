package queen_test

import (
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// cluster is a transport to nodes that answer, fail or cannot be dialled.
type cluster struct {
	asked []string
	state map[string]string // host -> "500", "dial", "reset" or "" for good
}

func (c *cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	c.asked = append(c.asked, r.URL.Host)
	switch c.state[r.URL.Host] {
	case "dial":
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	case "reset":
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")}
	case "500":
		return response(r, 500, `{"error":"pool"}`), nil
	}
	return response(r, 204, ""), nil
}

func (c *cluster) take() []string {
	asked := c.asked
	c.asked = nil
	return asked
}

func newCluster(t *testing.T) (*cluster, *queen.Client) {
	nodes := &cluster{state: map[string]string{}}
	return nodes, client(t, queen.Config{URLs: []string{"http://a", "http://b", "http://c"}, Transport: nodes})
}

func pop(t *testing.T, c *queen.Client) error {
	_, err := c.Pop(t.Context(), popRequest())
	return err
}

func TestNodesTakeTurns(t *testing.T) {
	t.Parallel()
	nodes, c := newCluster(t)
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
	synctest.Test(t, func(t *testing.T) {
		for _, how := range []string{"500", "reset"} {
			nodes, c := newCluster(t)
			nodes.state["a"] = how
			if err := pop(t, c); err == nil { // not repeated elsewhere: it may have been done
				t.Fatal("no error from a")
			}
			for range 4 {
				if err := pop(t, c); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff([]string{"a", "b", "c", "b", "b"}, nodes.take()); d != "" {
				t.Errorf("%s: %s", how, d)
			}
			time.Sleep(5 * time.Second)
			nodes.state["a"] = ""
			for range 3 {
				if err := pop(t, c); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff([]string{"c", "a", "b"}, nodes.take()); d != "" {
				t.Errorf("%s, after five seconds: %s", how, d)
			}
		}
	})
}

func TestUnreachableNodeIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	nodes, c := newCluster(t)
	nodes.state["a"], nodes.state["b"] = "dial", "dial"
	if err := pop(t, c); err != nil {
		t.Errorf("Pop() = %v; want the third node's answer", err)
	}
	if d := cmp.Diff([]string{"a", "b", "c"}, nodes.take()); d != "" {
		t.Error(d)
	}
	nodes.state["c"] = "dial"
	err := pop(t, c)
	if err == nil || queen.Uncertain(err) {
		t.Errorf("Pop() with every node away = %v; want a certain error", err)
	}
	nodes.state = map[string]string{}
	if err := pop(t, c); err != nil {
		t.Errorf("Pop() = %v; want nodes that are down to be tried when there is no other", err)
	}
}

func TestLeasesStayWithTheirNode(t *testing.T) {
	t.Parallel()
	nodes, c := newCluster(t)
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
		t.Error(d)
	}
	nodes.state["b"] = "dial"
	calls()
	if asked := nodes.take(); asked[0] != "b" || asked[len(asked)-1] == "b" {
		t.Errorf("asked %v; want another node once b is away", asked)
	}
}
