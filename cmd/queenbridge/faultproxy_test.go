package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// class is a kind of request to Queen; faults are aimed at one.
type class string

const (
	push        class = "push"
	popSource   class = "pop of events"
	popRetry    class = "pop of retries"
	popDead     class = "pop of dead letters"
	popPinned   class = "pinned pop"
	ackOne      class = "ack"
	ackBatch    class = "ack batch"
	transaction class = "transaction"
	extend      class = "extend"
	timers      class = "timers" // but for cancels
	cancel      class = "cancel"
	kv          class = "kv" // but for reads of attempt counts: others are polled
	counts      class = "attempt counts"
	other       class = "other"
)

var allClasses = []class{push, popSource, popRetry, popDead, popPinned, ackOne, ackBatch, transaction, extend, timers, kv, other, cancel, counts}

func classOf(r *http.Request, body []byte) class {
	path, isRetry := r.URL.Path, r.URL.Query().Get("namespace") == "queenbridge-retry"
	switch {
	case path == "/api/v1/push":
		return push
	case path == "/api/v1/ack":
		return ackOne
	case path == "/api/v1/ack/batch":
		return ackBatch
	case path == "/api/v1/transaction":
		return transaction
	case path == "/api/v1/kv" && bytes.Contains(body, []byte(`"op":"getMany"`)):
		return counts
	case path == "/api/v1/kv":
		return kv
	case strings.HasPrefix(path, "/api/v1/timers/") && r.Method == http.MethodDelete:
		return cancel
	case strings.HasPrefix(path, "/api/v1/timers"):
		return timers
	case strings.HasPrefix(path, "/api/v1/lease/"):
		return extend
	case strings.HasPrefix(path, "/api/v1/pop/") && strings.Contains(path, "/partition/"):
		return popPinned
	case strings.HasPrefix(path, "/api/v1/pop/queue/queenbridge-dead."):
		return popDead
	case isRetry || strings.HasPrefix(path, "/api/v1/pop/queue/queenbridge-retry."):
		return popRetry
	case strings.HasPrefix(path, "/api/v1/pop"):
		return popSource
	}
	return other
}

func (c class) pops() bool {
	return c == popSource || c == popRetry || c == popDead || c == popPinned
}

// exchange is one request as the proxy saw it.
type exchange struct {
	class  class
	uri    string
	body   []byte
	fault  string
	came   time.Time
	status int    // of the broker's answer; 0: it never saw the request, or did not answer
	answer []byte // the broker's
}

// faultProxy stands between a bridge and its broker and misbehaves as told:
// first as planned, one fault per request, then as held, then at random.
type faultProxy struct {
	*httptest.Server
	transport *http.Transport

	mu       sync.Mutex
	broker   *url.URL
	planned  map[class][]fault
	held     map[class]fault
	seed     uint64
	odds     float64
	catalog  map[class][]fault
	count    map[class]uint64
	done     []exchange
	grew     chan struct{}
	waiting  map[*http.Request]waiting // for the broker
	injected map[string]int
}

type waiting struct {
	class class
	cut   chan struct{}
}

func newFaultProxy(t *testing.T, broker string) *faultProxy {
	t.Helper()
	p := &faultProxy{
		planned: map[class][]fault{}, held: map[class]fault{}, count: map[class]uint64{}, grew: make(chan struct{}),
		waiting: map[*http.Request]waiting{}, injected: map[string]int{},
		// One connection per request: nothing is sent twice by net/http itself.
		transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true},
	}
	p.pointTo(t, broker)
	p.Server = httptest.NewServer(p)
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
		if t.Failed() {
			t.Logf("the proxy saw:\n%s", p.story())
		}
	})
	return p
}

// pointTo changes the broker.
func (p *faultProxy) pointTo(t *testing.T, broker string) {
	t.Helper()
	u, err := url.Parse(broker)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broker = u
}

// plan lets the next requests of a class meet these faults, one each.
func (p *faultProxy) plan(c class, faults ...fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.planned[c] = append(p.planned[c], faults...)
}

// hold lets every request of these classes meet a fault until release.
func (p *faultProxy) hold(f func(class) fault, classes ...class) (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range classes {
		p.held[c] = f(c)
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, c := range classes {
			delete(p.held, c)
		}
	}
}

// randomly lets a part of all requests meet a fault of their class; odds 0
// ends that. The n-th request of a class meets the same fault for the same
// seed.
func (p *faultProxy) randomly(seed uint64, odds float64, catalog map[class][]fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seed, p.odds, p.catalog = seed, odds, catalog
}

// admit decides what a request meets; one planned is used up. cut is closed
// when the request shall end without an answer.
func (p *faultProxy) admit(r *http.Request, c class) (f fault, cut <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count[c]++
	f = p.chosen(c)
	if f.name != "" {
		p.injected[string(c)+": "+f.name]++
	}
	w := waiting{c, make(chan struct{})}
	p.waiting[r] = w
	return f, w.cut
}

func (p *faultProxy) chosen(c class) fault {
	if next := p.planned[c]; len(next) > 0 {
		p.planned[c] = next[1:]
		return next[0]
	}
	if f, ok := p.held[c]; ok {
		return f
	}
	choices := p.catalog[c]
	rng := rand.New(rand.NewPCG(p.seed, p.count[c]<<8|uint64(slices.Index(allClasses, c))))
	if len(choices) == 0 || rng.Float64() >= p.odds {
		return fault{}
	}
	return choices[rng.IntN(len(choices))]
}

// unspent are the planned faults that met no request.
func (p *faultProxy) unspent(c class) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.planned[c])
}

// next is plan for a class of long polls: those that wait for the broker are
// reset, so that the bridge asks anew and meets the plan.
func (p *faultProxy) next(c class, faults ...fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.planned[c] = append(p.planned[c], faults...)
	for r, w := range p.waiting {
		if w.class == c {
			close(w.cut)
			delete(p.waiting, r)
		}
	}
}

func (p *faultProxy) answered(r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, r)
}

// ServeHTTP carries one request through its fault.
func (p *faultProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		reset(w)
		return
	}
	x := &exchange{class: classOf(r, body), uri: r.URL.RequestURI(), body: body, came: time.Now()}
	f, cut := p.admit(r, x.class)
	x.fault = f.name
	answer, ok := reply{}, pauseFor(r, f.delay)
	if ok && !f.unsent {
		answer, ok = p.forward(r, x, &f, cut)
	}
	p.answered(r)
	p.note(*x)
	if !ok {
		reset(w)
		return
	}
	p.answer(w, r, x, &f, answer)
}

// reply is a whole HTTP answer.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// forward asks the broker; false where it does not answer, or the request was
// cut meanwhile.
func (p *faultProxy) forward(r *http.Request, x *exchange, f *fault, cut <-chan struct{}) (reply, bool) {
	p.mu.Lock()
	u := *p.broker
	p.mu.Unlock()
	u.Path, u.RawPath, u.RawQuery = r.URL.Path, r.URL.RawPath, r.URL.RawQuery
	if x.class.pops() && f.loses() {
		u.RawQuery = shortLease(u.Query())
	}
	ctx, cancel := withCut(r.Context(), cut)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.Method, u.String(), bytes.NewReader(x.body))
	if err != nil {
		return reply{}, false
	}
	req.Header = r.Header.Clone()
	res, err := p.transport.RoundTrip(req)
	if err != nil {
		return reply{}, false
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{}, false
	}
	x.status, x.answer = res.StatusCode, body
	return reply{res.StatusCode, res.Header, body}, true
}

// shortLease lets what a lost pop answer leased come again after a second: the
// bridge never saw that lease.
func shortLease(q url.Values) string {
	q.Set("leaseSeconds", "1")
	return q.Encode()
}

// answer gives the bridge what the fault leaves of an answer.
func (p *faultProxy) answer(w http.ResponseWriter, r *http.Request, x *exchange, f *fault, a reply) {
	if f.silent {
		<-r.Context().Done()
		return
	}
	if f.cut == cutAll {
		reset(w)
		return
	}
	if f.reply != nil {
		a = f.reply(x)
	}
	if f.mangle != nil {
		a.body = f.mangle(a.body)
	}
	for name, values := range a.header {
		if name != "Connection" && name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	if len(a.body) > 0 {
		w.Header().Set("Content-Length", fmt.Sprint(len(a.body)))
	}
	w.WriteHeader(a.status)
	f.write(w, r, a.body)
}

// reset ends a connection without a word, as a dying peer does.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// note records an exchange, in the order in which the broker answered.
func (p *faultProxy) note(x exchange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = append(p.done, x)
	close(p.grew)
	p.grew = make(chan struct{})
}

// seen are the exchanges of a class so far.
func (p *faultProxy) seen(c class) []exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []exchange
	for _, x := range p.done {
		if x.class == c {
			all = append(all, x)
		}
	}
	return all
}

// await waits for an exchange of a class, after the first skip of them, that
// match accepts (nil: any).
func (p *faultProxy) await(t *testing.T, c class, skip int, match func(exchange) bool) exchange {
	t.Helper()
	deadline := time.After(patient)
	for {
		p.mu.Lock()
		grew := p.grew
		p.mu.Unlock()
		all := p.seen(c)
		for _, x := range all[min(skip, len(all)):] {
			if match == nil || match(x) {
				return x
			}
		}
		select {
		case <-grew:
		case <-deadline:
			t.Fatalf("no such %s through the proxy within %s", c, patient)
		}
	}
}

// story lists what the proxy did, for a failed test.
func (p *faultProxy) story() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	from := max(0, len(p.done)-400)
	for _, x := range p.done[from:] {
		fmt.Fprintf(&b, "%s %-12s %-28s %d %.300s\n    → %.300s\n", x.came.Format("05.000"), x.class, x.fault, x.status, x.body, x.answer)
	}
	return b.String()
}

// summary counts the faults that met a request.
func (p *faultProxy) summary() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var lines []string
	for what, n := range p.injected {
		lines = append(lines, fmt.Sprintf("%d× %s", n, what))
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}
