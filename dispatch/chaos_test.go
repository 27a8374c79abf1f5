package dispatch_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
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

// TestChaos holds the dispatcher against the invariants of the delivery
// protocol (design.md, "as a state machine"): a function that fails in every
// way, a broker that loses answers, ends leases early and refuses at random,
// processes that die, stop and join, and an operator who redrives what is dead.
// At every step each event is in exactly one place, or delivered; in the end
// ids are stable, calls are bounded, replies are there, and ordering partition
// kept its order.
//
// QUEENBRIDGE_CHAOS_SEED=7 runs that one seed; QUEENBRIDGE_CHAOS_SEEDS=500 runs
// so many. Schedules differ between runs: a seed that fails may need several.
func TestChaos(t *testing.T) {
	t.Parallel()
	for _, seed := range chaosSeeds(t) {
		for _, ordering := range []bridge.Ordering{bridge.OrderingNone, bridge.OrderingPartition} {
			t.Run(fmt.Sprint(ordering, "/", seed), func(t *testing.T) {
				t.Parallel()
				t.Cleanup(func() {
					if t.Failed() {
						t.Logf("run it again: QUEENBRIDGE_CHAOS_SEED=%d go test -run 'TestChaos/%s/' ./dispatch", seed, ordering)
					}
				})
				chaos(t, seed, ordering)
			})
		}
	}
}

func chaosSeeds(t *testing.T) []uint64 {
	if one := os.Getenv("QUEENBRIDGE_CHAOS_SEED"); one != "" {
		seed, err := strconv.ParseUint(one, 10, 64)
		if err != nil {
			t.Fatalf("QUEENBRIDGE_CHAOS_SEED: %v", err)
		}
		return []uint64{seed}
	}
	n, err := strconv.Atoi(cmp.Or(os.Getenv("QUEENBRIDGE_CHAOS_SEEDS"), "12"))
	if err != nil {
		t.Fatalf("QUEENBRIDGE_CHAOS_SEEDS: %v", err)
	}
	if testing.Short() {
		n = 3
	}
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = uint64(i)
	}
	return seeds
}

// answered is one call and how it ended.
type answered struct {
	body     string
	id       string
	begun    time.Time
	finished time.Time
	status   int  // 0: no answer
	counts   bool // as an attempt
}

type world struct {
	*kit
	seed    uint64
	old     bool // the broker forgets ids of pending messages
	calm    atomic.Bool
	looking atomic.Bool // at the broker: nothing goes wrong with that
	rng     *rand.Rand
	mu      sync.Mutex
	calls   []answered
	// faults counts what may add a call: deaths, leases that ended early and,
	// for old events, lost answers.
	faults   atomic.Int32
	redriven map[string]int // how often, by event
	all      []*chaosProcess
}

const chaosPartitions, chaosEvents = 5, 12

// body is an event; every fifth is too large to travel with a retry.
func body(p, n int) string {
	pad := ""
	if (p+n)%5 == 0 {
		pad = strings.Repeat("x", 10<<10)
	}
	return fmt.Sprintf(`{"p":%d,"n":%d,"pad":%q}`, p, n, pad)
}

func eventID(p, n int) string { return fmt.Sprintf("%d/%d", p, n) }

func chaos(t *testing.T, seed uint64, ordering bridge.Ordering) {
	old := seed%4 == 3
	change := func(c *devbroker.Config) {
		c.RiderRate = 100
		if old {
			c.ForgetAfter = 15 * time.Minute
		}
	}
	inBubble(t, change, func(k *kit) {
		w := &world{kit: k, seed: seed, old: old, rng: rand.New(rand.NewPCG(seed, 7)), redriven: map[string]int{}}
		r := testRoute("r", "q")
		if ordering == bridge.OrderingPartition {
			r = orderedRoute("r", "q")
		}
		if seed%2 == 0 {
			r.Reply.Queue = "answers"
		}
		w.kit.faults.set(w.fault)
		for p := range chaosPartitions {
			for n := range chaosEvents {
				w.pushSurely(queen.Item{Queue: "q", Partition: fmt.Sprint("p", p), TransactionID: eventID(p, n), Payload: []byte(body(p, n))})
			}
		}
		if old {
			w.wait(20 * time.Minute)
		}
		w.act(r)
		w.calm.Store(true)
		for _, p := range w.all[:len(w.all)-1] { // one is enough for what is left
			p.end()
		}
		w.wait(time.Hour)
		w.checkPlaces(r)
		w.check(r, ordering)
		for _, p := range w.all {
			p.end()
		}
	})
}

// act lets time pass, processes die, stop and join, and an operator redrive.
func (w *world) act(r bridge.Route) {
	a, b := w.process(r), w.process(r)
	plan := rand.New(rand.NewPCG(w.seed, 11))
	for range 10 {
		w.wait(time.Duration(5+plan.IntN(60)) * time.Second)
		w.checkPlaces(r)
		switch plan.IntN(6) {
		case 0:
			a.kill()
			a = w.process(r)
		case 1:
			a.end()
			a = w.process(r)
		case 2:
			b.kill()
			b = w.process(r)
		case 3:
			w.process(r) // and stays
		case 4:
			w.redrive(r)
		}
	}
}

// redrive presses the button while everything else goes wrong.
func (w *world) redrive(r bridge.Route) {
	o := w.operator()
	page, err := o.DeadLetters(w.Context(), r.Name, dispatch.DeadLetterQuery{})
	if err != nil {
		return
	}
	var ids []string // only these: another may be filed meanwhile
	for _, l := range page.Letters {
		w.redriven[l.Origin.TransactionID]++
		ids = append(ids, l.ID)
	}
	if len(ids) > 0 {
		_, _ = o.Redrive(w.Context(), r.Name, dispatch.Order{Selection: dispatch.Selection{IDs: ids}})
	}
}

// checkPlaces holds the broker against the first invariant: an event is
// delivered, or in exactly one of source queue, timers, retry queue, dead queue
// and DLQ; of old events and of those an operator redrives there may be copies.
func (w *world) checkPlaces(r bridge.Route) {
	w.Helper()
	w.looking.Store(true)
	defer w.looking.Store(false)
	places := map[string][]string{}
	w.addPending(places, r.Queue, func(m listed) string { return m.TransactionID })
	for _, q := range []string{bridge.RetryQueue(r.Name), bridge.DeadQueue(r.Name)} {
		w.addPending(places, q, func(m listed) string { return w.eventOf(w.dataOf(m)) })
	}
	for after := ""; ; {
		rows, next, err := w.client.ListTimers(w.Context(), bridge.RetryQueue(r.Name), after, 1000)
		if err != nil {
			w.Fatal(err)
		}
		for _, row := range rows {
			if timer, found, err := w.client.PeekTimer(w.Context(), bridge.RetryQueue(r.Name), row.Key); err != nil || found {
				places[w.eventOf(timer.Payload)] = append(places[w.eventOf(timer.Payload)], "timer")
			}
		}
		if after = next; next == "" {
			break
		}
	}
	for _, g := range w.graves(r.Name) {
		places[g.Origin.TransactionID] = append(places[g.Origin.TransactionID], "DLQ")
	}
	_, done := w.history()
	for p := range chaosPartitions {
		for n := range chaosEvents {
			id := eventID(p, n)
			at := places[id]
			if len(at) == 0 && done[body(p, n)].IsZero() {
				w.Errorf("%s is nowhere and was never delivered", id)
			}
			if most := 1 + w.redriven[id]; len(at) > most && !w.old {
				w.Errorf("%s is in %v, want one place", id, at)
			}
		}
	}
}

// listed is a message as Queen lists it.
type listed struct {
	TransactionID, PartitionID, Status string
}

// addPending adds what a queue holds and its group has not consumed.
func (w *world) addPending(places map[string][]string, queueName string, event func(listed) string) {
	w.Helper()
	from := time.Now().Add(-24 * time.Hour).UTC().Format(time.RFC3339)
	var list struct{ Messages []listed }
	if err := json.Unmarshal(w.raw("GET", "/api/v1/messages?limit=1000&queue="+queueName+"&from="+from, ""), &list); err != nil {
		w.Fatal(err)
	}
	for _, m := range list.Messages {
		if m.Status == "pending" || m.Status == "processing" {
			id := event(m)
			places[id] = append(places[id], queueName)
		}
	}
}

func (w *world) dataOf(m listed) []byte {
	w.Helper()
	stored, err := w.client.Message(w.Context(), m.PartitionID, m.TransactionID)
	if err != nil {
		w.Fatal(err)
	}
	return stored.Data
}

func (w *world) eventOf(envelope []byte) string {
	w.Helper()
	d, ours, err := bridge.DecodeDelivery(envelope)
	if err != nil || !ours {
		w.Fatalf("%q: ours %v, %v", envelope, ours, err)
	}
	return d.Origin.TransactionID
}

func (w *world) draw(parts ...any) float64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, append([]any{w.seed}, parts...)...)
	return rand.New(rand.NewPCG(h.Sum64(), 1)).Float64()
}

// fault is what goes wrong with a request to the broker.
func (w *world) fault(r *http.Request) devbroker.Fault {
	if w.calm.Load() || w.looking.Load() {
		return devbroker.Fault{}
	}
	w.mu.Lock()
	x := w.rng.Float64()
	w.mu.Unlock()
	pop, settle := strings.HasPrefix(r.URL.Path, "/api/v1/pop"), r.URL.Path == "/api/v1/transaction"
	switch {
	case x < 0.02:
		w.lostAnswer()
		return devbroker.Fault{LoseAnswer: true}
	case x < 0.03:
		w.lostAnswer()
		return devbroker.Fault{CutAnswer: 10}
	case x < 0.05:
		return devbroker.Fault{Status: 503}
	case x < 0.08 && pop:
		w.faults.Add(1)
		return devbroker.Fault{Lease: time.Duration(1+100*(x-0.05)) * time.Second}
	case x < 0.12 && settle:
		return devbroker.Fault{Status: 429, Body: `{"success":false,"reason":"rate_limited","error":"rate_limited","results":[]}`}
	case x < 0.14:
		return devbroker.Fault{Delay: time.Duration(x*10) * time.Second}
	}
	return devbroker.Fault{}
}

// lostAnswer: a repeat is refused by the lease it released, unless that settles
// in two steps.
func (w *world) lostAnswer() {
	if w.old {
		w.faults.Add(1)
	}
}

func (w *world) pushSurely(item queen.Item) {
	for {
		v, err := w.client.Push(w.Context(), []queen.Item{item})
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
	p.w.faults.Add(1)
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
	w.calls = append(w.calls, answered{body: string(r.Body), id: r.DeliveryID, begun: time.Now(), counts: true})
	w.mu.Unlock()
	resp := w.answer(ctx, string(r.Body), i)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[i].status, w.calls[i].finished = resp.Status, time.Now()
	w.calls[i].counts = resp.Status != 429 && (resp.Err == nil || resp.Sent)
	return resp
}

func (w *world) answer(ctx context.Context, body string, i int) bridge.Response {
	x := w.draw(body, i)
	ok := bridge.Response{Status: 200, Body: []byte("done with " + body)}
	switch {
	case w.calm.Load(), x < 0.55:
		return after(ctx, time.Duration(x*100)*time.Millisecond, ok)
	case x < 0.57:
		return bridge.Response{Status: 200, Body: []byte("done"), Cut: true}
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
		return after(ctx, time.Duration(x*40)*time.Second, ok)
	}
	return after(ctx, time.Hour, ok)
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
		c.Cramp(64) // 8 KiB are large
		if w.seed%3 == 1 {
			c.Park(0) // as where there are many routes
		}
	}, r)
	p.d, p.end = d, d.stop
	w.all = append(w.all, p)
	return p
}

// check holds what happened against the promises.
func (w *world) check(r bridge.Route, ordering bridge.Ordering) {
	w.Helper()
	w.settledAll(r)
	graves := map[string]int{}
	for _, g := range w.graves("r") {
		graves[string(g.Payload)]++
	}
	calls, firstDone := w.history()
	for p := range chaosPartitions {
		for n := range chaosEvents {
			event, id := body(p, n), eventID(p, n)
			if graves[event] == 0 && firstDone[event].IsZero() {
				w.Errorf("%s is lost: neither delivered nor dead, calls %+v", id, calls[event])
			}
			if graves[event] > 1+w.redriven[id] && !w.old {
				w.Errorf("%s has %d dead letters", id, graves[event])
			}
			w.checkCalls(r, id, calls[event])
		}
	}
	if ordering == bridge.OrderingPartition {
		w.checkOrder(calls, firstDone, graves)
	}
	if r.Reply.Queue != "" {
		w.checkReplies(r, calls, firstDone, graves)
	}
}

// checkCalls: as many as the policy allows, for the event and each redrive of
// it, and one more per death and lost lease. Held calls do not count.
func (w *world) checkCalls(r bridge.Route, id string, calls []answered) {
	w.Helper()
	counted := 0
	for _, c := range calls {
		if c.counts {
			counted++
		}
		if c.id != calls[0].id {
			w.Errorf("%s has ids %s and %s", id, c.id, calls[0].id)
		}
	}
	if most := r.Retry.MaxAttempts*(1+w.redriven[id]) + int(w.faults.Load()); counted > most {
		w.Errorf("%s was called %d times, %d of them attempts, with %d deaths and lost leases and %d redrives; want at most %d",
			id, len(calls), counted, w.faults.Load(), w.redriven[id], most)
	}
}

// checkReplies: what was delivered is answered, never twice by one attempt, and
// nothing is answered that was not called.
func (w *world) checkReplies(r bridge.Route, calls map[string][]answered, firstDone map[string]time.Time, graves map[string]int) {
	w.Helper()
	replies := map[string]int{}
	for _, e := range w.repliesIn(r.Reply.Queue) {
		event, ok := strings.CutPrefix(string(e.Body), "done with ")
		if !ok {
			w.Errorf("reply %q", e.Body)
		}
		replies[event]++
	}
	for p := range chaosPartitions {
		for n := range chaosEvents {
			event, good := body(p, n), 0
			for _, c := range calls[event] {
				if c.status == 200 {
					good++
				}
			}
			if replies[event] == 0 && !firstDone[event].IsZero() && graves[event] == 0 || replies[event] > good {
				w.Errorf("%s has %d replies to %d successful calls, %d dead letters", eventID(p, n), replies[event], good, graves[event])
			}
		}
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
func (w *world) checkOrder(calls map[string][]answered, firstDone map[string]time.Time, graves map[string]int) {
	w.Helper()
	for p := range chaosPartitions {
		for n := 1; n < chaosEvents; n++ {
			later, before := body(p, n), body(p, n-1)
			if len(calls[later]) == 0 || graves[before] > 0 || w.redriven[eventID(p, n-1)] > 0 {
				continue
			}
			if first := calls[later][0].begun; firstDone[before].IsZero() || firstDone[before].After(first) {
				w.Errorf("%s was called before %s was done", eventID(p, n), eventID(p, n-1))
			}
		}
	}
}
