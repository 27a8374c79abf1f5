package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
)

// TestChaos: a function that fails in every way, a broker that loses answers,
// ends leases early and refuses at random, processes that die and are
// stopped, two at a time, and an operator who pauses and changes the route. Whatever happens: no event is lost, ids are stable,
// calls are bounded, and ordering partition keeps its order.
func TestChaos(t *testing.T) {
	t.Parallel()
	seeds := 12
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		for _, ordering := range []bridge.Ordering{bridge.OrderingNone, bridge.OrderingPartition} {
			t.Run(fmt.Sprint(ordering, "/", seed), func(t *testing.T) {
				t.Parallel()
				chaos(t, uint64(seed), ordering)
			})
		}
	}
}

// answered is one call and how it ended.
type answered struct {
	body     string
	id       string
	begun    time.Time
	finished time.Time
	status   int // 0: no answer
}

type world struct {
	*kit
	seed  uint64
	calm  atomic.Bool
	rng   *rand.Rand
	mu    sync.Mutex
	calls []answered
	// faults counts what may add a call: deaths, lost leases, cut answers.
	faulty atomic.Int32
}

func chaos(t *testing.T, seed uint64, ordering bridge.Ordering) {
	old := seed%4 == 3 // the broker forgets ids of pending messages
	change := func(c *devbroker.Config) {
		c.RiderRate = 100
		if old {
			c.ForgetAfter = 15 * time.Minute
		}
	}
	inBubble(t, change, func(k *kit) {
		w := &world{kit: k, seed: seed, rng: rand.New(rand.NewPCG(seed, 7))}
		r := testRoute("r", "q")
		if ordering == bridge.OrderingPartition {
			r = orderedRoute("r", "q")
		}
		w.faults.set(w.fault)
		const partitions, events = 5, 12
		for p := range partitions {
			for n := range events {
				w.pushSurely("q", fmt.Sprint("p", p), fmt.Sprintf(`{"p":%d,"n":%d}`, p, n))
			}
		}
		if old {
			w.wait(20 * time.Minute)
		}
		a, b, pauses := w.process(r), w.process(r), dispatch.NewPauses(w.client)
		plan := rand.New(rand.NewPCG(seed, 11))
		for range 8 {
			w.wait(time.Duration(5+plan.IntN(60)) * time.Second)
			switch plan.IntN(7) {
			case 0:
				a.kill()
				a = w.process(r)
			case 1:
				a.end()
				a = w.process(r)
			case 2:
				b.kill()
				b = w.process(r)
			case 3: // a process that just died may be told, too
				r.Concurrency = 1 + plan.IntN(8)
				_, _ = a.d.Update([]bridge.Route{r}, []bridge.Target{testTarget("fn")}), b.d.Update([]bridge.Route{r}, []bridge.Target{testTarget("fn")})
			case 4:
				_ = pauses.PauseRoute(w.Context(), "r", pauseBy("chaos"))
			case 5:
				_ = b.d.PauseTarget(w.Context(), "fn", pauseBy("chaos"))
			}
		}
		w.calm.Store(true)
		if err := errors.Join(pauses.ResumeRoute(w.Context(), "r"), pauses.ResumeTarget(w.Context(), "fn")); err != nil {
			w.Fatal(err)
		}
		w.wait(6 * time.Hour)
		w.check(r, ordering, old, partitions, events)
		a.end()
		b.end()
	})
}

func (w *world) draw(parts ...any) float64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, append([]any{w.seed}, parts...)...)
	return rand.New(rand.NewPCG(h.Sum64(), 1)).Float64()
}

// fault is what goes wrong with a request to the broker.
func (w *world) fault(r *http.Request) devbroker.Fault {
	if w.calm.Load() {
		return devbroker.Fault{}
	}
	w.mu.Lock()
	x := w.rng.Float64()
	w.mu.Unlock()
	pop, settle := strings.HasPrefix(r.URL.Path, "/api/v1/pop"), r.URL.Path == "/api/v1/transaction"
	switch {
	case x < 0.02:
		w.faulty.Add(1)
		return devbroker.Fault{LoseAnswer: true}
	case x < 0.03:
		w.faulty.Add(1)
		return devbroker.Fault{CutAnswer: 10}
	case x < 0.05:
		return devbroker.Fault{Status: 503}
	case x < 0.08 && pop:
		w.faulty.Add(1)
		return devbroker.Fault{Lease: time.Duration(1+100*(x-0.05)) * time.Second}
	case x < 0.12 && settle:
		return devbroker.Fault{Status: 429, Body: `{"success":false,"reason":"rate_limited","error":"rate_limited","results":[]}`}
	case x < 0.14:
		return devbroker.Fault{Delay: time.Duration(x*10) * time.Second}
	}
	return devbroker.Fault{}
}

func (w *world) pushSurely(queueName, partition, payload string) {
	for {
		v, err := w.client.Push(w.Context(), []queen.Item{{Queue: queueName, Partition: partition, TransactionID: payload, Payload: []byte(payload)}})
		if err == nil && (v[0].Status == queen.PushQueued || v[0].Status == queen.PushDuplicate) {
			return
		}
	}
}

// chaosProcess is a dispatcher that can be killed: nothing it does reaches
// anybody any more.
type chaosProcess struct {
	w    *world
	d    *process
	dead atomic.Bool
	end  func()
}

func (p *chaosProcess) kill() {
	p.w.faulty.Add(1)
	p.dead.Store(true)
	go p.end()
}

// RoundTrip is the process's network.
func (p *chaosProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.dead.Load() {
		return nil, errors.New("the process is dead")
	}
	resp, err := p.w.broker.Transport().RoundTrip(r)
	if p.dead.Load() {
		return nil, errors.New("the process is dead")
	}
	return resp, err
}

// Send is the function, as the process reaches it.
func (p *chaosProcess) Send(ctx context.Context, r *bridge.Request) bridge.Response {
	if p.dead.Load() {
		return bridge.Response{Err: errors.New("dead"), Class: bridge.FailureConnect}
	}
	w := p.w
	w.mu.Lock()
	i := len(w.calls)
	w.calls = append(w.calls, answered{body: string(r.Body), id: r.DeliveryID, begun: time.Now()})
	w.mu.Unlock()
	resp := w.answer(ctx, string(r.Body), i)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[i].status, w.calls[i].finished = resp.Status, time.Now()
	return resp
}

func (w *world) answer(ctx context.Context, body string, i int) bridge.Response {
	x := w.draw(body, i)
	switch {
	case w.calm.Load(), x < 0.55:
		return after(ctx, time.Duration(x*100)*time.Millisecond, bridge.Response{Status: 200})
	case x < 0.75:
		return after(ctx, 20*time.Millisecond, bridge.Response{Status: 500})
	case x < 0.79:
		return bridge.Response{Status: 400}
	case x < 0.82:
		return bridge.Response{Status: 429, Header: http.Header{"Retry-After": {"20"}}}
	case x < 0.85:
		return bridge.Response{Err: errors.New("refused"), Class: bridge.FailureConnect}
	case x < 0.88:
		panic("chaos")
	case x < 0.94:
		return after(ctx, time.Duration(x*40)*time.Second, bridge.Response{Status: 200})
	}
	return after(ctx, time.Hour, bridge.Response{Status: 200})
}

func (w *world) process(r bridge.Route) *chaosProcess {
	p := &chaosProcess{w: w}
	client, err := queen.New(queen.Config{URLs: []string{"http://queen"}, Transport: p})
	if err != nil {
		w.Fatal(err)
	}
	d := w.start(func(c *dispatch.Config) {
		c.Queen = client
		c.NewSender = func(bridge.Target) (dispatch.Sender, error) { return p, nil }
		c.StopTimeout = 40 * time.Second
	}, r)
	p.d, p.end = d, d.stop
	return p
}

// check holds the world against the promises.
func (w *world) check(r bridge.Route, ordering bridge.Ordering, old bool, partitions, events int) {
	w.Helper()
	w.settledAll(r)
	graves := map[string]int{}
	for _, g := range w.graves("r") {
		graves[string(g.Payload)]++
	}
	calls, firstDone := w.history()
	faults := int(w.faulty.Load())
	for p := range partitions {
		for n := range events {
			body := fmt.Sprintf(`{"p":%d,"n":%d}`, p, n)
			if graves[body] == 0 && firstDone[body].IsZero() {
				w.Errorf("%s is lost: neither delivered nor dead, calls %+v", body, calls[body])
			}
			if graves[body] > 1 && !old {
				w.Errorf("%s has %d dead letters", body, graves[body])
			}
			if most := r.Retry.MaxAttempts + faults + 20; len(calls[body]) > most { // 20: held calls do not count
				w.Errorf("%s was called %d times with %d faults", body, len(calls[body]), faults)
			}
			for _, c := range calls[body] {
				if c.id != calls[body][0].id {
					w.Errorf("%s has ids %s and %s", body, c.id, calls[body][0].id)
				}
			}
		}
	}
	if ordering == bridge.OrderingPartition {
		w.checkOrder(calls, firstDone, graves, partitions, events)
	}
}

func (w *world) history() (calls map[string][]answered, firstDone map[string]time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls, firstDone = map[string][]answered{}, map[string]time.Time{}
	for _, c := range w.calls {
		calls[c.body] = append(calls[c.body], c)
		if done, ok := firstDone[c.body]; c.status == 200 && (!ok || c.finished.Before(done)) {
			firstDone[c.body] = c.finished
		}
	}
	return calls, firstDone
}

// checkOrder: an event is called first only when all before it in its
// partition were delivered or ended as dead letters.
func (w *world) checkOrder(calls map[string][]answered, firstDone map[string]time.Time, graves map[string]int, partitions, events int) {
	w.Helper()
	for p := range partitions {
		for n := 1; n < events; n++ {
			later, before := fmt.Sprintf(`{"p":%d,"n":%d}`, p, n), fmt.Sprintf(`{"p":%d,"n":%d}`, p, n-1)
			if len(calls[later]) == 0 || graves[before] > 0 {
				continue
			}
			if first := calls[later][0].begun; firstDone[before].IsZero() || firstDone[before].After(first) {
				w.Errorf("%s was called before %s was done", later, before)
			}
		}
	}
}
