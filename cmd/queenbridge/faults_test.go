package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// failsAsTold is a function that fails an event as often as its body says
// ("fail":n, by attempt number), and refuses one with "bad".
func failsAsTold(_ context.Context, c call) int {
	var attempt, fails int
	if i := bytes.Index(c.body, []byte(`"fail":`)); i >= 0 {
		_, _ = fmt.Sscanf(string(c.body[i:]), `"fail":%d`, &fails)
	}
	_, _ = fmt.Sscan(c.attempt, &attempt)
	switch {
	case bytes.Contains(c.body, []byte(`"bad":1`)):
		return http.StatusBadRequest
	case attempt <= fails:
		return http.StatusInternalServerError
	}
	return http.StatusOK
}

const quickRetry = "    retry: {backoff: [200ms], jitter: none}\n"

// accepted posts an event as a patient provider does, again with the same id
// until it is answered 200, and returns that answer. Any other but 503 would
// make a provider give up, or is wrong.
func (p *process) accepted(path, id, body string) http.Header {
	p.t.Helper()
	var header http.Header
	within(p.t, 2*patient, "event "+id+" is accepted", func() (bool, string) {
		status, h, answer := p.github(path, id, body)
		if header = h; status != http.StatusOK && status != http.StatusServiceUnavailable {
			p.t.Errorf("event %s is answered %d %s", id, status, answer)
		}
		return status == http.StatusOK, fmt.Sprint(status, " ", answer)
	})
	return header
}

// TestFaultsOfPushes: whatever happens to a push, its event is stored once and
// called once, and the provider hears 2xx only when it is stored.
func TestFaultsOfPushes(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t), newTarget(t, always(200))
	p := w.ready(w.route("github", hexSecret, f.URL, ""))
	queue := w.name("main")
	for i, fault := range append(anyCall[:len(anyCall):len(anyCall)], databaseAway(push)) {
		body := fmt.Sprintf(`{"n":%d}`, i)
		before := len(w.proxy.seen(push))
		w.proxy.plan(push, fault, fault)
		p.accepted(w.path(), fmt.Sprint(i), body)
		tries := w.proxy.seen(push)[before:]
		if fault.loses() {
			if len(tries) < 3 {
				t.Errorf("%s: answered 2xx after %d pushes, though two of them failed", fault.name, len(tries))
			}
			sameIDs(t, fault.name, tries)
		}
		if w.proxy.unspent(push) > 0 { // a fault that is none for a push: it was answered well
			p.accepted(w.path(), fmt.Sprint(i, "b"), fmt.Sprintf(`{"n":%d,"b":1}`, i))
		}
		p.drained(queue, queue, patient)
		if n := len(f.of(body)); n != 1 {
			t.Errorf("%s: %d calls, want 1", fault.name, n)
		}
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// sameIDs checks that every push of an event carries the same transaction id.
func sameIDs(t *testing.T, name string, tries []exchange) {
	t.Helper()
	id := func(x exchange) string {
		_, rest, _ := strings.Cut(string(x.body), `"transactionId":"`)
		id, _, _ := strings.Cut(rest, `"`)
		return id
	}
	for _, x := range tries {
		if id(x) == "" || id(x) != id(tries[0]) {
			t.Errorf("%s: pushed again under id %q, first %q", name, id(x), id(tries[0]))
		}
	}
}

// TestPushNeverAnswered: a silent broker costs the provider's request its
// time; the resend is a duplicate, and the event is called once.
func TestPushNeverAnswered(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t), newTarget(t, always(200))
	p := w.ready(w.route("github", hexSecret, f.URL, ""))
	w.proxy.plan(push, silentDone)
	status, header, _ := p.github(w.path(), "s", `{"n":1}`)
	if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("answered %d with Retry-After %q, want 503 and one", status, header.Get("Retry-After"))
	}
	if h := p.accepted(w.path(), "s", `{"n":1}`); h.Get("Queen-Duplicate") != "1" {
		t.Error("the resend is no duplicate")
	}
	p.drained(w.name("main"), w.name("main"), patient)
	f.attempts(t, `{"n":1}`, 1)
}

// TestFaultsOfSettles: whatever happens to the transaction that settles a
// failed event, the identical body goes out until it is answered, the event is
// retried or buried exactly once, and the function is not called for it.
func TestFaultsOfSettles(t *testing.T) {
	t.Parallel()
	faults := append(anyCall[:len(anyCall):len(anyCall)], transientRefusal, databaseAway(transaction))
	// A lease is 60 s, in order 15. A real sweeper that sleeps fires its first
	// timer up to 28 s late (measured 1.3.0).
	const soon, soonInOrder = 45 * time.Second, 13 * time.Second
	kinds := []struct {
		name, more, event string
		calls             int
		soon              time.Duration
	}{
		{"retry", quickRetry, `"fail":1`, 2, soon},
		{"dead letter", "", `"bad":1`, 1, soon},
		{"count in order", "    ordering: partition\n" + quickRetry, `"fail":1`, 2, soonInOrder},
		{"dead letter in order", "    ordering: partition\n", `"bad":1`, 1, soonInOrder},
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			w, f := newFaultyWorld(t), newTarget(t, failsAsTold)
			p := w.ready(w.route("github", hexSecret, f.URL, kind.more))
			queue := w.name("main")
			dead := 0
			for i, fault := range faults {
				body := fmt.Sprintf(`{"n":%d,%s}`, i, kind.event)
				before := len(w.proxy.seen(transaction))
				w.proxy.plan(transaction, fault, fault)
				p.accepted(w.path(), fmt.Sprint(i), body)
				w.proxy.awaitAnswered(t, transaction, before, fault)
				p.drained(queue, queue, patient)
				f.attempts(t, body, kind.calls)
				sameBody(t, w.proxy.seen(transaction)[before:])
				if calls := f.of(body); calls[len(calls)-1].at.Sub(calls[0].at) > kind.soon {
					t.Errorf("%s: the retry came only with the end of the lease", fault.name)
				}
				if kind.event == `"bad":1` {
					dead++
					checkBuried(t, fault.name, p, queue, body, dead)
				}
			}
			if code := p.stop(); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
		})
	}
}

// checkBuried checks that an event is a dead letter once, as http_4xx, and
// that there are that many in all.
func checkBuried(t *testing.T, name string, p *process, route, body string, all int) {
	t.Helper()
	bodies := p.deadBodies(route)
	if classes := bodies[body]; len(classes) != 1 || classes[0] != "http_4xx" {
		t.Errorf("%s: dead letters of %s: %v, want one http_4xx", name, body, classes)
	}
	if len(bodies) != all {
		t.Errorf("%s: %d events are dead, want %d", name, len(bodies), all)
	}
}

// TestFaultsOfAcks: whatever happens to the acks of delivered events, they are
// acked and the function is not called again.
func TestFaultsOfAcks(t *testing.T) {
	t.Parallel()
	for _, ordering := range []string{"none", "partition"} {
		t.Run(ordering, func(t *testing.T) {
			t.Parallel()
			w, f := newFaultyWorld(t), newTarget(t, always(200))
			p := w.ready(w.route("github", hexSecret, f.URL, "    ordering: "+ordering+"\n"))
			queue := w.name("main")
			for i, fault := range append(anyCall[:len(anyCall):len(anyCall)], databaseAway(ackBatch)) {
				body := fmt.Sprintf(`{"n":%d}`, i)
				before := len(w.proxy.seen(ackBatch))
				w.proxy.plan(ackBatch, fault, fault)
				p.accepted(w.path(), fmt.Sprint(i), body)
				w.proxy.awaitAnswered(t, ackBatch, before, fault)
				p.drained(queue, queue, patient)
				f.attempts(t, body, 1)
				sameBody(t, w.proxy.seen(ackBatch)[before:])
			}
			if code := p.stop(); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
		})
	}
}

// TestFaultsOfDeadLetterAcks: whatever happens to the ack that files a dead
// letter, there is one row for it.
func TestFaultsOfDeadLetterAcks(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t), newTarget(t, failsAsTold)
	p := w.ready(w.route("github", hexSecret, f.URL, ""))
	queue := w.name("main")
	for i, fault := range append(anyCall[:len(anyCall):len(anyCall)], databaseAway(ackOne)) {
		body := fmt.Sprintf(`{"n":%d,"bad":1}`, i)
		before := len(w.proxy.seen(ackOne))
		w.proxy.plan(ackOne, fault, fault)
		p.accepted(w.path(), fmt.Sprint(i), body)
		w.proxy.awaitAnswered(t, ackOne, before, fault)
		p.drained(queue, queue, patient)
		f.attempts(t, body, 1)
		checkBuried(t, fault.name, p, queue, body, i+1)
	}
}

// TestFaultsOfCounts: whatever happens to the reading of attempt counts, an
// ordered event is called once.
func TestFaultsOfCounts(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t), newTarget(t, failsAsTold)
	p := w.ready(w.route("github", hexSecret, f.URL, "    ordering: partition\n"+quickRetry))
	queue := w.name("main")
	for i, fault := range append(anyCall[:len(anyCall):len(anyCall)], databaseAway(counts)) {
		body := fmt.Sprintf(`{"n":%d,"fail":1}`, i)
		before := len(w.proxy.seen(counts))
		w.proxy.plan(counts, fault, fault)
		p.accepted(w.path(), fmt.Sprint(i), body)
		w.proxy.awaitAnswered(t, counts, before, fault)
		p.drained(queue, queue, patient)
		f.attempts(t, body, 2)
	}
}

// awaitAnswered waits until a class of which a fault was planned twice is
// answered well: at the third try, or at the first where the fault does not
// take the answer.
func (p *faultProxy) awaitAnswered(t *testing.T, c class, before int, f fault) {
	t.Helper()
	tries := 1
	if f.loses() {
		tries = 3
	}
	x := p.await(t, c, before+tries-1, nil)
	if f.loses() && x.fault != "" {
		t.Errorf("%s: the third %s met a fault too", f.name, c)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.planned, c)
}

// TestFaultsAtStart: a broker in trouble delays the start and no more.
func TestFaultsAtStart(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t), newTarget(t, always(200))
	w.proxy.plan(other, lostReply, garbage, noFault, noFault, noFault, proxyDown, resetBefore) // 5 × health, then configure
	w.proxy.plan(timers, limited)
	w.proxy.plan(kv, halfReply)
	p := w.start(w.route("github", hexSecret, f.URL, ""))
	p.accepted(w.path(), "a", `{"n":1}`)
	f.nextWithin(2 * patient)
	p.drained(w.name("main"), w.name("main"), patient)
	f.attempts(t, `{"n":1}`, 1)
	if n := w.proxy.unspent(other) + w.proxy.unspent(timers) + w.proxy.unspent(kv); n != 0 {
		t.Errorf("%d faults met no request: the test proves less than it says", n)
	}
}

// TestSettleRefusedByRateKeepsItsLease: Queen refuses a settle by its rate for
// longer than the lease is; the bridge renews the lease, sends the settle
// again, and the event is retried once.
func TestSettleRefusedByRateKeepsItsLease(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t), newTarget(t, failsAsTold)
	p := w.ready(w.route("github", hexSecret, f.URL, "    ordering: partition\n"+quickRetry)) // a lease of 15 s
	queue := w.name("main")
	release := w.proxy.hold(func(class) fault { return limited }, transaction)
	p.accepted(w.path(), "a", `{"fail":1}`)
	first := f.next()
	longer := time.NewTimer(time.Until(first.at.Add(17 * time.Second)))
	defer longer.Stop()
	<-longer.C
	f.attempts(t, `{"fail":1}`, 1)
	release()
	if second := f.next(); second.at.Sub(first.at) < 17*time.Second {
		t.Errorf("retried after %s, before its settle was accepted", second.at.Sub(first.at))
	}
	p.drained(queue, queue, patient)
	f.attempts(t, `{"fail":1}`, 2)
	sent := w.proxy.seen(transaction)
	sameBody(t, sent)
	if n := len(sent); n < 4 || n > 60 {
		t.Errorf("the settle was sent %d times in 17 s", n)
	}
}

// TestFailingRenewals: renewals fail until shortly before the lease runs out;
// the call that outlasts the lease is the only one.
func TestFailingRenewals(t *testing.T) {
	t.Parallel()
	w := newFaultyWorld(t)
	over := make(chan struct{})
	f := newTarget(t, func(ctx context.Context, _ call) int {
		select {
		case <-over:
		case <-ctx.Done():
		}
		return 200
	})
	p := w.ready(w.route("github", hexSecret, f.URL, "    ordering: partition\n")) // a lease of 15 s, renewed after 5, 10
	queue := w.name("main")
	w.proxy.plan(extend, resetBefore, unavailable, garbage) // after 5 s and twice 1.25 s
	p.accepted(w.path(), "a", `{"n":1}`)
	first := f.next()
	renewed := w.proxy.await(t, extend, 3, nil)
	if renewed.status != http.StatusOK || !bytes.Contains(renewed.answer, []byte(`"renewed":1`)) {
		t.Errorf("the first good renewal was answered %d %s", renewed.status, renewed.answer)
	}
	longer := time.NewTimer(time.Until(first.at.Add(17 * time.Second)))
	defer longer.Stop()
	<-longer.C
	f.attempts(t, `{"n":1}`, 1)
	close(over)
	p.drained(queue, queue, patient)
	f.attempts(t, `{"n":1}`, 1)
}
