package dispatch_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/dispatch"
)

// realKit is a real Queen, a network to it that fails as told, and a function.
type realKit struct {
	*testing.T
	url    string
	client *queen.Client // over a network that does not fail
	health queen.Health
	fn     *function
	net    *http.Transport
}

func newRealKit(t *testing.T) *realKit {
	t.Helper()
	url := os.Getenv("QUEEN_REAL_URL")
	if url == "" {
		t.Fatal("no real Queen: QUEEN_REAL_URL is not set; hint: bridge/queen/queentest/real.sh run go test -run Real ./dispatch")
	}
	k := &realKit{T: t, url: url, fn: newFunction(), net: &http.Transport{MaxIdleConnsPerHost: 50}}
	t.Cleanup(k.net.CloseIdleConnections)
	k.client = k.connect(0)
	health, err := k.client.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k.health = health
	return k
}

func (k *realKit) connect(faults float64) *queen.Client {
	c, err := queen.New(queen.Config{URLs: []string{k.url}, Transport: &lossy{next: k.net, faults: faults}})
	if err != nil {
		k.Fatal(err)
	}
	return c
}

// lossy loses answers and requests.
type lossy struct {
	next   http.RoundTripper
	faults float64
}

func (l *lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	x := mathrand.Float64()
	if x < l.faults/2 {
		return nil, errors.New("the request was lost")
	}
	resp, err := l.next.RoundTrip(r)
	if err == nil && x < l.faults && !strings.HasPrefix(r.URL.Path, "/api/v1/pop") {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return nil, errors.New("the answer was lost")
	}
	return resp, err
}

// route is a route of its own queue.
func (k *realKit) route(ordering bridge.Ordering) bridge.Route {
	name := "r" + strings.ToLower(rand.Text()[:12])
	r := testRoute(name, "test."+name)
	if ordering == bridge.OrderingPartition {
		r = orderedRoute(name, "test."+name)
	}
	for _, q := range []queen.QueueOptions{
		{Queue: r.Queue, Namespace: "test", Task: name},
		{Queue: bridge.RetryQueue(name), Namespace: bridge.RetryNamespace, Task: name},
		{Queue: bridge.DeadQueue(name), Namespace: bridge.DeadNamespace, Task: name},
	} {
		q.Lease, q.RetryLimit, q.DedupWindow, q.CompletedRetention = time.Minute, 1000000, 6*time.Hour, 6*time.Hour
		if err := k.client.Configure(k.Context(), q); err != nil {
			k.Fatal(err)
		}
	}
	return r
}

func (k *realKit) start(client *queen.Client, r bridge.Route) (stop func()) {
	return k.startWith(client, func(*dispatch.Config) {}, r)
}

// startWith is start with another configuration.
func (k *realKit) startWith(client *queen.Client, change func(*dispatch.Config), r bridge.Route) (stop func()) {
	cfg := dispatch.Config{
		Routes: []bridge.Route{r}, Targets: []bridge.Target{testTarget("fn")}, Queen: client, Health: k.health,
		NewSender: func(bridge.Target) (dispatch.Sender, error) { return sender{k.fn, "fn"}, nil },
		Logger:    slog.New(slog.NewTextHandler(k.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	change(&cfg)
	d, err := dispatch.New(cfg)
	if err != nil {
		k.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			k.Error(err)
		}
	})
	k.Cleanup(stop)
	return stop
}

func (k *realKit) push(queueName, partition string, payloads ...string) {
	k.Helper()
	items := make([]queen.Item, len(payloads))
	for i, p := range payloads {
		items[i] = queen.Item{Queue: queueName, Partition: partition, TransactionID: p, Payload: []byte(p)}
	}
	if _, err := k.client.Push(k.Context(), items); err != nil {
		k.Fatal(err)
	}
}

// get reads a path of the broker.
func (k *realKit) get(path string) []byte {
	k.Helper()
	req, err := http.NewRequestWithContext(k.Context(), http.MethodGet, k.url+path, nil)
	if err != nil {
		k.Fatal(err)
	}
	resp, err := k.net.RoundTrip(req)
	if err != nil {
		k.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		k.Fatalf("GET %s: %d %s, %v", path, resp.StatusCode, body, err)
	}
	return body
}

// until waits for a condition.
func (k *realKit) until(what string, d time.Duration, ok func() bool) {
	k.Helper()
	deadline := time.Now().Add(d)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			k.Fatalf("%s: not within %v; calls %d", what, d, len(k.fn.all()))
		}
		<-tick.C
	}
}

// empty says that nothing is left to do on a route.
func (k *realKit) empty(r bridge.Route) bool {
	for _, q := range []struct{ name, group string }{{r.Queue, r.Group}, {bridge.RetryQueue(r.Name), r.Name}, {bridge.DeadQueue(r.Name), r.Name}} {
		n, err := k.client.Depth(k.Context(), q.name, q.group)
		if err != nil && !errors.Is(err, queen.ErrNotFound) {
			k.Fatal(err)
		}
		if n > 0 {
			return false
		}
	}
	n, err := k.client.CountTimers(k.Context(), bridge.RetryQueue(r.Name), 10)
	if err != nil {
		k.Fatal(err)
	}
	return n == 0
}

func (k *realKit) deadLetters(r bridge.Route) []queen.DeadLetter {
	rows, err := k.client.DeadLetters(k.Context(), queen.DeadLetterQuery{Queue: bridge.DeadQueue(r.Name), Limit: 1000})
	if err != nil {
		k.Fatal(err)
	}
	return rows
}

func TestRealRetriesAndDeadLetters(t *testing.T) {
	t.Parallel()
	k := newRealKit(t)
	r := k.route(bridge.OrderingNone)
	r.Retry.Backoff = []time.Duration{2 * time.Second}
	k.fn.answers(func(_ context.Context, c call) bridge.Response {
		switch {
		case strings.Contains(c.body, "refused"):
			return bridge.Response{Status: 422, Body: []byte("no \x00 such thing")}
		case strings.Contains(c.body, "failing") && c.n <= 2:
			return bridge.Response{Status: 503}
		}
		return bridge.Response{Status: 200}
	})
	k.start(k.client, r)
	odd := []string{`{"failing":"\u0000"}`, `{"refused":"\u0000 and \ud800"}`, `{"failing" : 123456789012345678901234567890}`, `{"b":1,"a":1,"a":2}`}
	k.push(r.Queue, "p", odd...)
	k.until("all is done", 60*time.Second, func() bool { return len(k.fn.all()) == 8 && k.empty(r) })
	for i, want := range []int{3, 1, 3, 1} {
		calls := k.fn.of(odd[i])
		if len(calls) != want {
			t.Errorf("%s: %d calls with these bytes, want %d", odd[i], len(calls), want)
		}
		for j := 1; j < len(calls); j++ {
			// How late a retry may be is RunLateness's matter: others run beside this.
			if late := calls[j].at.Sub(calls[j-1].at) - 2*time.Second; late < 0 || late > 10*time.Second {
				t.Errorf("%s: call %d came %v late", odd[i], j+1, late)
			}
		}
	}
	rows := k.deadLetters(r)
	if len(rows) != 1 {
		t.Fatalf("%d dead letters, want 1", len(rows))
	}
	d, ours, err := bridge.DecodeDelivery(rows[0].Data)
	if err != nil || !ours || string(d.Payload) != odd[1] || d.Dead.Status != 422 {
		t.Errorf("dead letter = %q %+v, %v", d.Payload, d.Dead, err)
	}
}

func TestRealSlowCall(t *testing.T) {
	t.Parallel()
	k := newRealKit(t)
	r := k.route(bridge.OrderingNone)
	k.fn.answers(func(ctx context.Context, c call) bridge.Response {
		if c.body == `{"slow":1}` {
			return after(ctx, 12*time.Second, bridge.Response{Status: 200})
		}
		return bridge.Response{Status: 200}
	})
	k.start(k.client, r)
	k.push(r.Queue, "p", `{"slow":1}`)
	k.until("the slow call began", 30*time.Second, func() bool { return len(k.fn.all()) == 1 })
	k.push(r.Queue, "p", `{"next":1}`)
	k.until("the event behind it is called", 8*time.Second, func() bool { return len(k.fn.of(`{"next":1}`)) == 1 })
	k.until("the retry is cancelled", 60*time.Second, func() bool { return k.empty(r) })
	if n := len(k.fn.all()); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
}

func TestRealOrder(t *testing.T) {
	t.Parallel()
	k := newRealKit(t)
	r := k.route(bridge.OrderingPartition)
	r.Retry.Backoff = []time.Duration{time.Second, 17 * time.Second}
	k.fn.answers(func(_ context.Context, c call) bridge.Response {
		switch {
		case c.body == `{"p":0,"n":2}` && c.n <= 2:
			return bridge.Response{Status: 500}
		case c.body == `{"p":1,"n":1}`:
			return bridge.Response{Status: 400}
		}
		return bridge.Response{Status: 200}
	})
	for p := range 3 {
		var bodies []string
		for n := range 5 {
			bodies = append(bodies, fmt.Sprintf(`{"p":%d,"n":%d}`, p, n))
		}
		k.push(r.Queue, fmt.Sprint("p", p), bodies...)
	}
	k.start(k.client, r)
	k.until("the other partitions are done", 15*time.Second, func() bool { return len(k.fn.all()) >= 5+5+3 })
	k.until("all is done", 60*time.Second, func() bool { return len(k.fn.all()) == 17 && k.empty(r) })
	inOrder(t, k.fn.all())
	calls := k.fn.of(`{"p":0,"n":2}`)
	if gap := calls[2].at.Sub(calls[1].at); gap < 17*time.Second || gap > 27*time.Second || calls[2].Attempt != 3 {
		t.Errorf("attempt %d came %v after the second, want 17s", calls[2].Attempt, gap)
	}
	if rows := k.deadLetters(r); len(rows) != 1 {
		t.Errorf("%d dead letters, want 1", len(rows))
	}
}

func TestRealPayloadThatIsNotJSON(t *testing.T) {
	t.Parallel()
	k := newRealKit(t)
	r := k.route(bridge.OrderingNone)
	k.push(r.Queue, "p", `{"before":1}`)
	body := fmt.Sprintf(`{"operations":[{"op":"schedule","queue":%q,"timerKey":"k","partition":"p","delayMs":1,"txn":"poison","payload":%q}]}`,
		r.Queue, base64.StdEncoding.EncodeToString([]byte("no JSON \x00 at all")))
	resp, err := (&http.Client{Transport: k.net}).Post(k.url+"/api/v1/timers", "application/json", strings.NewReader(body))
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	_ = resp.Body.Close()
	k.until("the foreign timer fired", 45*time.Second, func() bool {
		n, err := k.client.Depth(t.Context(), r.Queue, r.Group)
		return err == nil && n == 2
	})
	k.push(r.Queue, "p", `{"behind":1}`)
	k.start(k.client, r)
	k.until("all is done", 4*time.Minute, func() bool { return len(k.fn.of(`{"behind":1}`)) > 0 && k.empty(r) })
	rows := k.deadLetters(r)
	if len(rows) != 1 {
		t.Fatalf("%d dead letters, want 1", len(rows))
	}
	if d, ours, err := bridge.DecodeDelivery(rows[0].Data); err != nil || !ours || string(d.Payload) != "no JSON \x00 at all" {
		t.Errorf("dead letter = %q, %v", d.Payload, err)
	}
}

func TestRealIDTwice(t *testing.T) {
	t.Parallel()
	eachOrdering(t, func(t *testing.T, ordering bridge.Ordering) {
		k := newRealKit(t)
		r := k.route(ordering)
		r.Retry.Backoff = []time.Duration{time.Second}
		err := k.client.Configure(t.Context(), queen.QueueOptions{Queue: r.Queue, Namespace: "test", Task: r.Name, Lease: time.Minute, RetryLimit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		k.fn.statuses(500)
		for i, id := range []string{"x", "y", "x"} {
			v, err := k.client.Push(t.Context(), []queen.Item{{Queue: r.Queue, Partition: "p", TransactionID: id, Payload: fmt.Appendf(nil, `{"p":0,"n":%d}`, i)}})
			if err != nil || v[0].Status != queen.PushQueued {
				t.Fatal(v, err)
			}
		}
		k.start(k.client, r)
		k.until("all is done", 60*time.Second, func() bool { return len(k.fn.all()) >= 6 && k.empty(r) })
		if n := len(k.fn.all()); n != 6 {
			t.Errorf("%d calls, want 6", n)
		}
	})
}

// Two processes on a network that loses requests and answers, a function that
// fails: nothing is lost, and order is kept.
func TestRealFaults(t *testing.T) {
	t.Parallel()
	eachOrdering(t, func(t *testing.T, ordering bridge.Ordering) {
		k := newRealKit(t)
		r := k.route(ordering)
		r.Retry.Backoff, r.Retry.MaxAttempts = []time.Duration{500 * time.Millisecond}, 50
		k.fn.answers(func(ctx context.Context, c call) bridge.Response {
			return after(ctx, time.Duration(mathrand.IntN(50))*time.Millisecond,
				bridge.Response{Status: []int{200, 200, 200, 500, 503}[mathrand.IntN(5)]})
		})
		stop := k.start(k.connect(0.1), r)
		k.start(k.connect(0.1), r)
		const partitions, events = 8, 40
		want := map[string]bool{}
		for p := range partitions {
			for n := range events {
				body := fmt.Sprintf(`{"p":%d,"n":%d}`, p, n)
				want[body] = true
				k.push(r.Queue, fmt.Sprint("p", p), body)
			}
		}
		stop()
		k.start(k.connect(0.1), r)
		k.until("all is done", 4*time.Minute, func() bool { return len(k.fn.all()) >= partitions*events && k.empty(r) })
		last := map[string]time.Time{}
		for _, c := range k.fn.all() {
			delete(want, c.body)
			last[c.body] = c.at
		}
		if len(want) > 0 || len(k.deadLetters(r)) > 0 {
			t.Errorf("%d events were never called, %d are dead letters", len(want), len(k.deadLetters(r)))
		}
		if ordering == bridge.OrderingPartition {
			k.firstCallsInOrder(partitions, events)
		}
	})
}

func (k *realKit) firstCallsInOrder(partitions, events int) {
	k.Helper()
	for p := range partitions {
		var order []int
		for _, c := range k.fn.all() {
			var cp, n int
			if _, err := fmt.Sscanf(c.body, `{"p":%d,"n":%d}`, &cp, &n); err == nil && cp == p && c.n == 1 {
				order = append(order, n)
			}
		}
		if !slices.IsSorted(order) || len(order) != events {
			k.Errorf("partition %d: first calls in the order %v", p, order)
		}
	}
}

// agesOf makes the ids of a queue a day old, where the broker keeps them.
const agesOf = `
update queen.log_txns set created_at = created_at - interval '1 day' where partition_id in
  (select p.id from queen.log_partitions p join queen.queues q on q.id = p.queue_id where q.name = 'QUEUE');
update queen.log_partitions set oldest_txn_at = oldest_txn_at - interval '1 day' where queue_id in
  (select id from queen.queues where name = 'QUEUE')`

// The broker has forgotten the ids of pending messages: every transaction,
// partial ack, retry and dlq of them is refused.
func TestRealOldEvents(t *testing.T) {
	t.Parallel()
	eachOrdering(t, func(t *testing.T, ordering bridge.Ordering) {
		k := newRealKit(t)
		r := k.route(ordering)
		r.Retry.Backoff = []time.Duration{time.Second}
		err := k.client.Configure(t.Context(), queen.QueueOptions{
			Queue: r.Queue, Namespace: "test", Task: r.Name, Lease: time.Minute, RetryLimit: 1000, DedupWindow: time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		k.push(r.Queue, "p", `{"p":0,"n":0}`, `{"p":0,"n":1}`, `{"p":0,"n":2}`, `{"p":0,"n":3}`)
		out, err := exec.CommandContext(t.Context(), "../bridge/queen/queentest/real.sh", "psql", strings.ReplaceAll(agesOf, "QUEUE", r.Queue)).CombinedOutput() //nolint:gosec // our own script
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		k.settleDown(15 * time.Second) // ids go at the retention round, every 5 s
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			switch {
			case c.body == `{"p":0,"n":1}` && c.n == 1:
				return bridge.Response{Status: 500}
			case c.body == `{"p":0,"n":2}`:
				return bridge.Response{Status: 400}
			}
			return bridge.Response{Status: 200}
		})
		k.start(k.client, r)
		k.until("all is done", 3*time.Minute, func() bool { return len(k.fn.of(`{"p":0,"n":3}`)) > 0 && k.empty(r) })
		for n, want := range []int{1, 2, 1, 1} {
			body := fmt.Sprintf(`{"p":0,"n":%d}`, n)
			// In order, a batch that is refused is called again singly.
			if got := len(k.fn.of(body)); got < want || got > want+map[bridge.Ordering]int{bridge.OrderingPartition: 1}[ordering] {
				t.Errorf("%d calls of %s, want %d", got, body, want)
			}
		}
		if ordering == bridge.OrderingPartition {
			k.firstCallsInOrder(1, 4)
		}
		if rows := k.deadLetters(r); len(rows) != 1 {
			t.Errorf("%d dead letters, want 1", len(rows))
		}
	})
}

// settleDown lets a real broker's own clock pass.
func (k *realKit) settleDown(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
}
