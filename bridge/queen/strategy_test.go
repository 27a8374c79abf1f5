package queen_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// assigned asks which node a pop goes to first.
func assigned(t *testing.T, urls []string, r queen.PopRequest) string {
	t.Helper()
	nodes := &cluster{state: map[string]string{}}
	c := client(t, queen.Config{URLs: urls, Transport: nodes})
	if _, err := c.Pop(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return nodes.take()[0]
}

func numberedURLs(n int) (urls []string) {
	for i := range n {
		urls = append(urls, fmt.Sprintf("http://queen-%d:6632", i+1))
	}
	return urls
}

// The nodes were computed by another implementation of the official clients'
// ring: FNV-1a 32 of "<url>-<0..127>" and of the key.
func TestAffinityAssignsAsTheOfficialClientsDo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ queue, partition, namespace, task, group, want string }{
		{queue: "github-events", group: "pushes-to-ci", want: "queen-3"},
		{queue: "github-events", partition: "github.7", group: "pushes-to-ci", want: "queen-1"},
		{queue: "orders", group: "billing", want: "queen-1"},
		{queue: "a", group: "g", want: "queen-2"},
		{queue: "b", group: "g", want: "queen-1"},
		{namespace: "queenbridge-retry", task: "pushes-to-ci", group: "pushes-to-ci", want: "queen-2"},
		{namespace: "ns", group: "g", want: "queen-1"},
		{task: "t", group: "g", want: "queen-3"},
	} {
		r := popRequest()
		r.Queue, r.Partition, r.Namespace, r.Task, r.Group = tt.queue, tt.partition, tt.namespace, tt.task, tt.group
		for _, urls := range [][]string{numberedURLs(3), {"http://queen-1:6632/", "http://u:p@queen-2:6632", "http://queen-3:6632"}} {
			if got := assigned(t, urls, r); got != tt.want+":6632" {
				t.Errorf("pop of %+v goes to %s, want %s", tt, got, tt.want)
			}
		}
	}
}

// A node that goes takes only its own keys along: about one in n.
func TestANodeThatLeavesMovesOnlyItsOwnKeys(t *testing.T) {
	t.Parallel()
	const keys = 2000
	for _, n := range []int{3, 5} {
		all := numberedURLs(n)
		full, less := &cluster{state: map[string]string{}}, &cluster{state: map[string]string{}}
		before := client(t, queen.Config{URLs: all, Transport: full})
		after := client(t, queen.Config{URLs: all[:n-1], Transport: less})
		left := strings.TrimPrefix(all[n-1], "http://")
		moved := 0
		for i := range keys {
			r := popRequest()
			r.Queue = fmt.Sprint("queue-", i)
			for _, c := range []*queen.Client{before, after} {
				if _, err := c.Pop(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			was, is := full.take()[0], less.take()[0]
			if was == left {
				moved++
			} else if was != is {
				t.Fatalf("%s moved from %s to %s, which were both there", r.Queue, was, is)
			}
		}
		// 128 points a node leave shares that differ by half.
		if share := float64(moved) / keys; share < 0.5/float64(n) || share > 1.6/float64(n) {
			t.Errorf("%d nodes: %.0f %% of the keys moved; want about 1 in %d", n, 100*share, n)
		}
	}
}

func TestAffinityKeepsPopsAtOneNodeAndTheRestInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes, c := newCluster(t, "")
		for range 3 {
			_ = pop(t, c)
		}
		asked := nodes.take()
		home := asked[0]
		if d := cmp.Diff([]string{home, home, home}, asked); d != "" {
			t.Error(d)
		}
		for range 6 {
			_ = ackOf(t, c)
		}
		if d := cmp.Diff([]string{"a", "b", "c", "a", "b", "c"}, nodes.take()); d != "" {
			t.Error(d)
		}
		nodes.set("reset", home)
		for range 3 {
			_ = pop(t, c)
		}
		asked = nodes.take()
		if asked[0] != home || asked[1] == home || !slices.Equal(asked[1:], []string{asked[1], asked[1], asked[1]}) {
			t.Errorf("asked %v; want %s once, then one other", asked, home)
		}
		time.Sleep(5 * time.Second)
		nodes.set("", home)
		if _ = pop(t, c); nodes.take()[0] != home {
			t.Errorf("the pop did not return to %s", home)
		}
	})
}

func TestSessionKeepsItsNodeUntilItFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes, c := newCluster(t, queen.StrategySession)
		both := func() []string {
			for range 3 {
				_ = pop(t, c)
				_ = ackOf(t, c)
			}
			return nodes.take()
		}
		asked := both()
		first := asked[0]
		if len(slices.Compact(asked)) != 1 {
			t.Fatalf("asked %v; want one node", asked)
		}
		nodes.set("dial", first)
		asked = both()
		second := asked[1]
		if asked[0] != first || second == first || len(slices.Compact(asked)) != 2 {
			t.Fatalf("asked %v; want another node for good", asked)
		}
		nodes.set("", first)
		time.Sleep(time.Minute)
		if asked := both(); len(slices.Compact(asked)) != 1 || asked[0] != second {
			t.Errorf("asked %v; want %s: it did not fail", asked, second)
		}
	})
}

func TestSessionsSpreadOverTheNodes(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 200 {
		nodes, c := newCluster(t, queen.StrategySession)
		_ = pop(t, c)
		seen[nodes.take()[0]] = true
	}
	if len(seen) != 3 {
		t.Errorf("200 clients chose %v; want all three nodes", seen)
	}
}

func TestNewRefusesAnUnknownStrategy(t *testing.T) {
	t.Parallel()
	_, err := queen.New(queen.Config{URLs: numberedURLs(2), Strategy: "round-robin"})
	if err == nil || !strings.Contains(err.Error(), `"round-robin"`) || !strings.Contains(err.Error(), "round_robin") {
		t.Errorf("New() error = %v; want it to name the word and the right ones", err)
	}
}

func BenchmarkAffinityPop(b *testing.B) {
	c := client(b, queen.Config{URLs: numberedURLs(5), Transport: roundTripper(func(r *http.Request) (*http.Response, error) { return response(r, 204, ""), nil })})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Pop(b.Context(), popRequest()); err != nil {
			b.Fatal(err)
		}
	}
}
