package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func replaceOnce(t *testing.T, s, old, with string) string {
	t.Helper()
	if strings.Count(s, old) != 1 {
		t.Fatalf("%q stands %d times in %s", old, strings.Count(s, old), s)
	}
	return strings.Replace(s, old, with, 1)
}

// TestDatabaseAway: while the broker's database is away pops come back empty,
// acks are refused for now, pushes are only buffered, the rest is 500 or 503.
// Nothing is accepted, called twice or lost, the bridge says that it is not
// ready, and goes on when the database is back.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	w := newFaultyWorld(t)
	inCall, back := make(chan struct{}), make(chan struct{})
	f := newTarget(t, func(ctx context.Context, c call) int {
		if strings.Contains(string(c.body), `"held":1`) {
			close(inCall)
			select {
			case <-back:
			case <-ctx.Done():
			}
		}
		return failsAsTold(ctx, c)
	})
	p := w.ready(w.route("github", hexSecret, f.URL, "    detach_after: 0s\n    retry: {backoff: [1s], jitter: none}\n"))
	queue := w.name("main")
	p.accepted(w.path(), "held", `{"held":1}`)
	<-inCall
	p.accepted(w.path(), "retried", `{"fail":1}`)
	w.proxy.await(t, transaction, 0, nil) // its timer is due while the database is away

	release := w.proxy.hold(databaseAway, allClasses...)
	for _, c := range []class{popSource, popRetry, popDead} {
		w.proxy.next(c)
	}
	close(back) // delivered, but its ack is refused
	status, header, _ := p.github(w.path(), "new", `{"new":1}`)
	if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("a buffered push is answered %d with Retry-After %q, want 503 and one", status, header.Get("Retry-After"))
	}
	if status, body := get(t, p.admin+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "Queen") {
		t.Errorf("/readyz answers %d %s, want 503 and Queen's trouble", status, body)
	}
	w.proxy.await(t, ackBatch, 3, nil)
	w.proxy.await(t, popSource, len(w.proxy.seen(popSource))+3, nil)
	release()

	p.awaitReady()
	p.accepted(w.path(), "new", `{"new":1}`)
	p.drained(queue, queue, patient)
	f.attempts(t, `{"held":1}`, 1)
	f.attempts(t, `{"fail":1}`, 2)
	f.attempts(t, `{"new":1}`, 1)
	if dead := p.deadBodies(queue); len(dead) != 0 {
		t.Errorf("dead letters: %v", dead)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// TestReadySoonAfterOneLostPop: one connection that breaks on an idle route is
// no lasting trouble.
func TestReadySoonAfterOneLostPop(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t), newTarget(t, always(200))
	p := w.ready(w.route("github", hexSecret, f.URL, ""))
	for _, c := range []class{popSource, popRetry, popDead} {
		before := len(w.proxy.seen(c))
		eventually(t, "a "+string(c)+" was cut", func() (bool, string) {
			w.proxy.next(c)
			return len(w.proxy.seen(c)) > before, ""
		})
	}
	within(t, 20*time.Second, "the bridge is ready again", func() (bool, string) {
		status, body := get(t, p.admin+"/readyz")
		return status == http.StatusOK, body
	})
}

// TestLongRetryAfterIsNotBelieved: a maintenance page that asks for an hour
// must not stop a queue's events for an hour; a minute at most is.
func TestLongRetryAfterIsNotBelieved(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t), newTarget(t, always(200))
	p := w.ready(w.route("github", hexSecret, f.URL, ""))
	hour := fault{name: "503, Retry-After 3600", unsent: true, reply: fixed(503, htmlText, "Retry-After", "3600")}
	w.proxy.plan(push, hour)
	w.proxy.next(popSource, hour)
	if status, _, _ := p.github(w.path(), "a", `{"n":1}`); status != http.StatusServiceUnavailable && status != http.StatusOK {
		t.Errorf("answered %d, want 503 or 200", status)
	}
	within(t, 70*time.Second, "the event is accepted", func() (bool, string) {
		status, _, answer := p.github(w.path(), "a", `{"n":1}`)
		return status == http.StatusOK, fmt.Sprint(status, " ", answer)
	})
	f.nextWithin(70 * time.Second)
}

// TestOneNodeOfTwoFails: two nodes of one broker fail in turn, each time in
// another way that shows: no answer, 5xx, or what no Queen says.
// Every event is accepted at its first try, and called once per attempt.
func TestOneNodeOfTwoFails(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t), newTarget(t, failsAsTold)
	nodes := []*faultProxy{w.proxy, newFaultProxy(t, w.url)}
	w.urls = []string{nodes[0].URL, nodes[1].URL}
	p := w.ready(w.keyed(f.URL, "    ordering: partition\n"+quickRetry)) // a lease of 15 s
	var bodies []string
	for i, away := range []fault{resetBefore, proxyDown, lostReply, unknownDone, brokenReply, garbage, pool, missing} {
		node := nodes[i%2]
		release := node.hold(func(class) fault { return away }, allClasses...)
		for _, c := range allClasses {
			node.next(c) // connections that wait are cut too
		}
		for n := range 10 {
			body := fmt.Sprintf(`{"key":"k%d","n":%d,"fail":%d}`, n%3, 10*i+n, n%2)
			bodies = append(bodies, body)
			if status, _, answer := p.github(w.path(), fmt.Sprint(10*i+n), body); status != http.StatusOK {
				t.Errorf("while one node of two answers with %q an event is answered %d %s", away.name, status, answer)
			}
		}
		release()
	}
	p.drained(w.name("main"), w.name("main"), 2*patient) // a pop that was cut may have leased
	for _, body := range bodies {
		f.attempts(t, body, 1+strings.Count(body, `"fail":1`))
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// TestKilledBrokerLosesNothing kills the broker again and again under load and
// starts it on the same data: every accepted event is delivered, each attempt
// is made once but for one more per kill, and with ordering partition the
// first successes of a key come in the order in which its events were
// accepted.
func TestKilledBrokerLosesNothing(t *testing.T) {
	t.Parallel()
	if realQueen() != "" {
		t.Skip("kills the broker, so it needs one of its own")
	}
	for _, ordering := range []string{"none", "partition"} {
		t.Run(ordering, func(t *testing.T) {
			t.Parallel()
			killBroker(t, ordering)
		})
	}
}

func killBroker(t *testing.T, ordering string) {
	const kills, keys = 3, 4
	dir := filepath.Join(t.TempDir(), "queen")
	run := func() *process { return launch(t, nil, "queen", "--addr", "127.0.0.1:0", "--data", dir) }
	broker := run()
	w := &faultyWorld{world: newWorld(t), url: broker.url("embedded broker listening")}
	w.proxy = newFaultProxy(t, w.url)
	f := newTarget(t, failsAsTold)
	p := w.ready(w.keyed(f.URL, "    ordering: "+ordering+"\n    retry: {backoff: [100ms], jitter: none}\n"))

	var over atomic.Bool
	var posters sync.WaitGroup
	accepted := make([][]string, keys)
	for key := range keys {
		posters.Go(func() {
			for n := 0; !over.Load(); n++ {
				body := fmt.Sprintf(`{"key":"k%d","n":%d,"fail":%d}`, key, n, max(0, n%8-6))
				p.accepted(w.path(), fmt.Sprint(key, "-", n), body)
				accepted[key] = append(accepted[key], body)
			}
		})
	}
	tick := time.NewTicker(1500 * time.Millisecond)
	defer tick.Stop()
	for range kills {
		<-tick.C
		broker.kill()
		broker = run()
		w.url = broker.url("embedded broker listening")
		w.proxy.pointTo(t, w.url)
	}
	<-tick.C
	over.Store(true)
	posters.Wait()
	p.queen = w.url
	p.drained(w.name("main"), w.name("main"), leaseOver)

	events, extra := 0, 0
	for key, bodies := range accepted {
		var order []string
		for _, body := range bodies {
			events++
			extra += checkKilled(t, f, body, kills)
			order = append(order, body)
		}
		if ordering == "partition" && !slices.Equal(order, firstSuccesses(f, fmt.Sprintf(`"key":"k%d"`, key))) {
			t.Errorf("key k%d was not delivered in order", key)
		}
	}
	if dead := p.deadBodies(w.name("main")); len(dead) != 0 {
		t.Errorf("dead letters: %v", dead)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	t.Logf("%d events over %d kills of the broker, %d calls more than attempts were due", events, kills, extra)
}

// checkKilled checks the calls of one event and returns how many there were
// beyond its attempts.
func checkKilled(t *testing.T, f *target, body string, kills int) (extra int) {
	t.Helper()
	calls := f.of(body)
	fails, delivered := 0, false
	_, _ = fmt.Sscanf(body[strings.Index(body, `"fail":`):], `"fail":%d`, &fails)
	for _, c := range calls {
		delivered = delivered || failsAsTold(t.Context(), c) == http.StatusOK
		if c.id != calls[0].id {
			t.Errorf("%s came under ids %s and %s", body, calls[0].id, c.id)
		}
	}
	if extra = len(calls) - (fails + 1); !delivered || extra > kills {
		t.Errorf("%s: delivered %t, %d calls, want at most %d", body, delivered, len(calls), fails+1+kills)
	}
	return extra
}

// firstSuccesses are the bodies with a text, in the order in which each first
// succeeded.
func firstSuccesses(f *target, text string) []string {
	var order []string
	for _, c := range f.seen() {
		body := string(c.body)
		if strings.Contains(body, text) && failsAsTold(context.Background(), c) == http.StatusOK && !slices.Contains(order, body) {
			order = append(order, body)
		}
	}
	return order
}
