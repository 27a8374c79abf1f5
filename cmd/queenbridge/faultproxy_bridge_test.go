package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// faultyWorld is a world whose bridge reaches its broker through a faultProxy.
type faultyWorld struct {
	*world
	proxy *faultProxy
	url   string   // of the broker itself
	urls  []string // of its nodes as the bridge knows them; default: the proxy
}

// newFaultyWorld starts a broker in memory, or takes the real Queen.
func newFaultyWorld(t *testing.T) *faultyWorld {
	t.Helper()
	w := &faultyWorld{world: newWorld(t), url: realQueen()}
	if w.url == "" {
		w.url = launch(t, nil, "queen", "--addr", "127.0.0.1:0", "--memory").url("embedded broker listening")
	}
	w.proxy = newFaultProxy(t, w.url)
	return w
}

// start runs a bridge behind the proxy until it listens.
func (w *faultyWorld) start(config string) *process {
	w.t.Helper()
	path := filepath.Join(w.dir, "bridge.yaml")
	urls := w.urls
	if urls == nil {
		urls = []string{w.proxy.URL}
	}
	whole := fmt.Sprintf("queen: {urls: ['%s']}\ningress: {addr: \"127.0.0.1:0\"}\nadmin: {addr: \"127.0.0.1:0\"}\n%s", strings.Join(urls, "', '"), config)
	if err := os.WriteFile(path, []byte(whole), 0o600); err != nil {
		w.t.Fatal(err)
	}
	p := launch(w.t, nil, "serve", "--config", path)
	p.ingress, p.admin, p.queen = p.url("ingress listening"), p.url("admin listening"), w.url
	return p
}

// ready is start, and waits until the bridge is ready.
func (w *faultyWorld) ready(config string) *process {
	w.t.Helper()
	p := w.start(config)
	p.awaitReady()
	return p
}

// left counts what Queen still holds of a route: events of its group, retries
// and dead envelopes, waiting or leased, and timers.
func (p *process) left(queue, route string) (string, bool) {
	p.t.Helper()
	events := p.depth(queue, route)
	retries := p.depth(bridge.RetryQueue(route), route)
	waiting := p.timers(bridge.RetryQueue(route))
	fired := p.depth(bridge.RetryQueue(route), route)
	dead := p.depth(bridge.DeadQueue(route), route)
	text := fmt.Sprintf("%d events, %d retries, %d timers, %d dead envelopes", events, max(retries, fired), waiting, dead)
	return text, events == 0 && retries == 0 && waiting == 0 && fired == 0 && dead == 0
}

// drained waits until Queen holds nothing of a route but dead letters: nothing
// can be called any more.
func (p *process) drained(queue, route string, bound time.Duration) {
	p.t.Helper()
	clean := 0
	within(p.t, bound, "nothing of route "+route+" is left in Queen", func() (bool, string) {
		text, none := p.left(queue, route)
		if !none {
			clean = 0
			return false, text
		}
		clean++ // a delivery may move while it is looked for
		return clean == 2, text
	})
}

// depth is how many messages of a queue a group has not acked; -1 where Queen
// does not say.
func (p *process) depth(queue, group string) int {
	p.t.Helper()
	status, body := get(p.t, p.queen+"/api/v1/resources/queues/"+queue+"/depth?group="+group)
	var answer struct{ Pending *int }
	if status != http.StatusOK || json.Unmarshal([]byte(body), &answer) != nil || answer.Pending == nil {
		return -1
	}
	return *answer.Pending
}

// timers is how many timers of a queue are pending; -1 where Queen does not
// say.
func (p *process) timers(queue string) int {
	p.t.Helper()
	status, body := get(p.t, p.queen+"/api/v1/timers/"+queue+"?limit=1000")
	var answer struct{ Rows []json.RawMessage }
	if status != http.StatusOK || json.Unmarshal([]byte(body), &answer) != nil {
		return -1
	}
	return len(answer.Rows)
}

// deadBodies are the bodies of a route's dead letters with their classes.
func (p *process) deadBodies(route string) map[string][]string {
	p.t.Helper()
	bodies := map[string][]string{}
	for _, row := range p.deadLetters(route) {
		d, ours, err := bridge.DecodeDelivery(row.Data)
		if err != nil || !ours || d.Dead == nil {
			p.t.Errorf("a dead letter is no envelope of ours (%v): %s", err, row.Data)
			continue
		}
		event, err := d.Event()
		if err != nil {
			p.t.Errorf("a dead letter holds no event: %v: %s", err, row.Data)
		}
		bodies[string(event.Body)] = append(bodies[string(event.Body)], string(d.Dead.Class))
	}
	return bodies
}

// of are the calls for one body.
func (f *target) of(body string) []call {
	var calls []call
	for _, c := range f.seen() {
		if string(c.body) == body {
			calls = append(calls, c)
		}
	}
	return calls
}

// attempts checks that a body was called exactly once per attempt 1 to n,
// under one id.
func (f *target) attempts(t *testing.T, body string, n int) {
	t.Helper()
	var got []string
	calls := f.of(body)
	for _, c := range calls {
		got = append(got, c.attempt)
		if c.id != calls[0].id || c.id == "" {
			t.Errorf("%s came under ids %q and %q", body, calls[0].id, c.id)
		}
	}
	var want []string
	for i := range n {
		want = append(want, fmt.Sprint(i+1))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s was called with attempts %v, want %v", body, got, want)
	}
}

// sameBody checks that every resend was the identical body.
func sameBody(t *testing.T, all []exchange) {
	t.Helper()
	for _, x := range all {
		if !bytes.Equal(x.body, all[0].body) {
			t.Errorf("a resend differs:\n%s\n%s", all[0].body, x.body)
		}
	}
}
