package dispatch_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
)

// kit is an embedded broker, its client, a function and dispatchers, all in a
// synctest bubble: time passes only when everybody waits.
type kit struct {
	*testing.T
	broker *devbroker.Broker
	client *queen.Client
	fn     *function
	faults faults
	logs   *logs
	health queen.Health
	stops  []func()
}

// generation is the generation of Queen that the brokers imitate: 2 with
// QUEENBRIDGE_TEST_GENERATION=2, which make test does after the rest, else 1.
var generation, _ = strconv.Atoi(os.Getenv("QUEENBRIDGE_TEST_GENERATION"))

// inBubble runs test with a kit. change edits the broker's configuration.
func inBubble(t *testing.T, change func(*devbroker.Config), test func(*kit)) {
	t.Helper()
	outer := t
	synctest.Test(t, func(t *testing.T) {
		k := &kit{T: t, fn: newFunction(), logs: &logs{}}
		cfg := devbroker.Config{Intercept: k.faults.of, Generation: generation}
		if change != nil {
			change(&cfg)
		}
		broker, err := devbroker.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		k.broker = broker
		k.client, err = queen.New(queen.Config{URLs: []string{"http://queen"}, Transport: broker.Transport()})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			for _, stop := range k.stops {
				stop()
			}
			if err := broker.Close(); err != nil {
				t.Error(err)
			}
			if (t.Failed() || outer.Failed()) && testing.Verbose() {
				k.logs.dump(os.Stderr)
			}
		}()
		test(k)
	})
}

// faults is what goes wrong with requests to the broker; it may change while
// they run.
type faults struct {
	mu   sync.Mutex
	next func(*http.Request) devbroker.Fault
}

func (f *faults) of(r *http.Request) devbroker.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == nil {
		return devbroker.Fault{}
	}
	return f.next(r)
}

func (f *faults) set(next func(*http.Request) devbroker.Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = next
}

// once lets fault happen to the first request on a path.
func (f *faults) once(path string, fault devbroker.Fault) {
	f.times(path, 1, fault)
}

func (f *faults) times(path string, n int, fault devbroker.Fault) {
	f.set(func(r *http.Request) devbroker.Fault {
		if n > 0 && r.URL.Path == path {
			n--
			return fault
		}
		return devbroker.Fault{}
	})
}

// function is the Sender of all targets. It records calls and answers as it is
// told.
type function struct {
	mu     sync.Mutex
	calls  []call
	answer func(context.Context, call) bridge.Response
	open   int
	most   int
}

// call is one call of the function.
type call struct {
	bridge.Request
	target string
	body   string
	at     time.Time
	n      int // of this body, from 1
}

func newFunction() *function {
	return &function{answer: func(context.Context, call) bridge.Response { return bridge.Response{Status: 200} }}
}

// answers sets how the function answers from now on.
func (f *function) answers(answer func(context.Context, call) bridge.Response) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

// status answers every call with what statuses has for it; 200 where it ends.
func (f *function) statuses(statuses ...int) {
	f.answers(func(_ context.Context, c call) bridge.Response {
		if c.n <= len(statuses) {
			return bridge.Response{Status: statuses[c.n-1], Header: http.Header{}}
		}
		return bridge.Response{Status: 200}
	})
}

type sender struct {
	f      *function
	target string
}

func (s sender) Send(ctx context.Context, r *bridge.Request) bridge.Response {
	f := s.f
	f.mu.Lock()
	c := call{Request: *r, target: s.target, body: string(r.Body), at: time.Now(), n: 1}
	c.Body = nil
	for _, earlier := range f.calls {
		if earlier.body == c.body && earlier.target == c.target {
			c.n++
		}
	}
	f.calls = append(f.calls, c)
	f.open++
	f.most = max(f.most, f.open)
	answer := f.answer
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.open--
		f.mu.Unlock()
	}()
	return answer(ctx, c)
}

func (f *function) all() []call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// of lists the calls with a body.
func (f *function) of(body string) []call {
	return slices.DeleteFunc(f.all(), func(c call) bool { return c.body != body })
}

// after waits d, or less where the call ends, which is then the answer.
func after(ctx context.Context, d time.Duration, resp bridge.Response) bridge.Response {
	select {
	case <-time.After(d):
		return resp
	case <-ctx.Done():
		return bridge.Response{Err: ctx.Err(), Class: bridge.FailureTimeout, Sent: true}
	}
}

// testRoute is a route with short delays and no jitter.
func testRoute(name, queue string) bridge.Route {
	return bridge.Route{
		Name: name, Queue: queue, Target: "fn", Group: name, Subscribe: "all", Ordering: bridge.OrderingNone,
		DetachAfter: 2 * time.Second,
		Retry: bridge.RetryPolicy{
			MaxAttempts: 5, MaxAge: 24 * time.Hour, Jitter: "none",
			Backoff: []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute},
		},
		Outcomes: bridge.Outcomes{Success: []string{"2xx"}},
	}
}

func orderedRoute(name, queue string) bridge.Route {
	r := testRoute(name, queue)
	r.Ordering = bridge.OrderingPartition
	r.Retry = bridge.RetryPolicy{
		MaxAttempts: 5, MaxAge: time.Hour, Jitter: "none",
		Backoff: []time.Duration{time.Second, 2 * time.Second, 40 * time.Second},
	}
	return r
}

// routeOf is the route r of queue q with an ordering.
func routeOf(ordering bridge.Ordering) bridge.Route {
	if ordering == bridge.OrderingPartition {
		return orderedRoute("r", "q")
	}
	return testRoute("r", "q")
}

// eachOrdering runs a test for both.
func eachOrdering(t *testing.T, test func(*testing.T, bridge.Ordering)) {
	t.Helper()
	for _, ordering := range []bridge.Ordering{bridge.OrderingNone, bridge.OrderingPartition} {
		t.Run(string(ordering), func(t *testing.T) { t.Parallel(); test(t, ordering) })
	}
}

func testTarget(name string) bridge.Target {
	return bridge.Target{Name: name, HTTP: &bridge.HTTPTarget{URL: "http://fn", Timeout: 30 * time.Second}, Concurrency: 50}
}

// process is one running dispatcher.
type process struct {
	*dispatch.Dispatcher
	reg  *prometheus.Registry
	stop func()
}

// start runs a dispatcher; stop drains it. change edits its configuration.
func (k *kit) start(change func(*dispatch.Config), routes ...bridge.Route) *process {
	k.Helper()
	reg := prometheus.NewRegistry()
	cfg := dispatch.Config{
		Routes: routes, Queen: k.client, Health: k.health,
		NewSender: func(t bridge.Target) (dispatch.Sender, error) { return sender{k.fn, t.Name}, nil },
		Logger:    slog.New(slog.NewTextHandler(k.logs, &slog.HandlerOptions{Level: slog.LevelDebug})), Metrics: reg,
	}
	seen := map[string]bool{}
	for _, r := range routes {
		if !seen[r.Target] {
			cfg.Targets = append(cfg.Targets, testTarget(r.Target))
		}
		seen[r.Target] = true
	}
	if change != nil {
		change(&cfg)
	}
	d, err := dispatch.New(cfg)
	if err != nil {
		k.Fatalf("New: %v", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(k.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := d.Run(ctx); err != nil {
			k.Errorf("Run: %v", err)
		}
	}()
	// No sync.Once: the time of a bubble stands still while one waits for a mutex.
	p := &process{Dispatcher: d, reg: reg, stop: func() { cancel(); <-done }}
	k.stops = append(k.stops, p.stop)
	return p
}

// metric is the value of one metric, labels as name=value pairs; 0: absent.
func (p *process) metric(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	families, err := p.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, f := range families {
		if f.GetName() != "queenbridge_dispatch_"+name {
			continue
		}
		for _, m := range f.GetMetric() {
			got := make([]string, 0, 4)
			for _, l := range m.GetLabel() {
				got = append(got, l.GetName()+"="+l.GetValue())
			}
			if !slices.ContainsFunc(labels, func(want string) bool { return !slices.Contains(got, want) }) {
				total += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return total
}

// push pushes raw JSON payloads to one partition, ids being the payloads.
func (k *kit) push(queueName, partition string, payloads ...string) {
	k.Helper()
	items := make([]queen.Item, len(payloads))
	for i, p := range payloads {
		items[i] = queen.Item{Queue: queueName, Partition: partition, TransactionID: "t:" + strings.Trim(p, `"`), Payload: json.RawMessage(p)}
	}
	verdicts, err := k.client.Push(k.Context(), items)
	if err != nil {
		k.Fatalf("push: %v", err)
	}
	for _, v := range verdicts {
		if v.Status != queen.PushQueued {
			k.Fatalf("push: %+v", v)
		}
	}
}

// depth is what a group has not consumed of a queue.
func (k *kit) depth(queueName, group string) int {
	k.Helper()
	n, err := k.client.Depth(k.Context(), queueName, group)
	if errors.Is(err, queen.ErrNotFound) {
		return 0
	}
	if err != nil {
		k.Fatalf("depth: %v", err)
	}
	return n
}

func (k *kit) timers(route string) int {
	k.Helper()
	n, err := k.client.CountTimers(k.Context(), bridge.RetryQueue(route), 1000)
	if err != nil {
		k.Fatalf("timers: %v", err)
	}
	return n
}

// grave is one dead letter, decoded.
type grave struct {
	bridge.Delivery
	reason bridge.DeadReason
	row    queen.DeadLetter
}

func (k *kit) graves(route string) []grave {
	k.Helper()
	rows, err := k.client.DeadLetters(k.Context(), queen.DeadLetterQuery{Queue: bridge.DeadQueue(route), Limit: 1000})
	if err != nil {
		k.Fatalf("dead letters: %v", err)
	}
	graves := make([]grave, len(rows))
	for i, row := range rows {
		d, ours, err := bridge.DecodeDelivery(row.Data)
		if err != nil || !ours {
			k.Fatalf("dead letter %s: ours %v, %v", row.TransactionID, ours, err)
		}
		graves[i] = grave{Delivery: d, row: row}
		if err := json.Unmarshal([]byte(row.Error), &graves[i].reason); err != nil {
			k.Fatalf("reason %q: %v", row.Error, err)
		}
	}
	return graves
}

// settledAll fails unless nothing is left to do on a route.
func (k *kit) settledAll(r bridge.Route) {
	k.Helper()
	if n := k.depth(r.Queue, r.Group); n != 0 {
		k.Errorf("%d messages left in %s", n, r.Queue)
	}
	if n := k.depth(bridge.RetryQueue(r.Name), r.Name); n != 0 {
		k.Errorf("%d retries left", n)
	}
	if n := k.depth(bridge.DeadQueue(r.Name), r.Name); n != 0 {
		k.Errorf("%d dead letters not filed", n)
	}
	if n := k.timers(r.Name); n != 0 {
		k.Errorf("%d timers left", n)
	}
}

// wait lets fake time pass.
func (k *kit) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// logs collects log lines.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

func (l *logs) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logs) dump(w io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Fprintln(w, l.text.String())
}

// foreignTimer lets another client's timer fire at once, with any bytes.
func (k *kit) foreignTimer(queueName, partition, key, payload string) {
	k.Helper()
	body := fmt.Sprintf(`{"operations":[{"op":"schedule","queue":%q,"timerKey":%q,"partition":%q,"delayMs":1,"txn":%q,"payload":%q}]}`,
		queueName, key, partition, key, base64.StdEncoding.EncodeToString([]byte(payload)))
	k.raw("POST", "/api/v1/timers", body)
}

// raw is a call of the broker's HTTP API.
func (k *kit) raw(method, path, body string) []byte {
	k.Helper()
	req, err := http.NewRequestWithContext(k.Context(), method, "http://queen"+path, strings.NewReader(body))
	if err != nil {
		k.Fatal(err)
	}
	resp, err := k.broker.Transport().RoundTrip(req)
	if err != nil {
		k.Fatal(err)
	}
	answer, _ := io.ReadAll(resp.Body)
	if resp.StatusCode > 299 {
		k.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, answer)
	}
	return answer
}

// readBody reads a request's body and puts it back.
func readBody(r *http.Request) string {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	return string(body)
}
