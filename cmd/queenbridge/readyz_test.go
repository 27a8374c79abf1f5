package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestDegradedIsReadyWhereEverySourceSpools: while Queen is away a balancer
// must go on sending webhooks where each of them is kept, and nowhere else.
func TestDegradedIsReadyWhereEverySourceSpools(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t), newTarget(t, always(200))
	config := fmt.Sprintf("ingress: {addr: \"127.0.0.1:0\", enqueue_timeout: 1s, spool: {dir: %q}}\n", filepath.Join(w.dir, "spool")) +
		strings.Replace(w.route("github", hexSecret, f.URL, ""), "secrets:", "spool: true, secrets:", 1)
	path := filepath.Join(w.dir, "bridge.yaml")
	whole := fmt.Sprintf("queen: {urls: [%q]}\nadmin: {addr: \"127.0.0.1:0\"}\n", w.proxy.URL) + config
	rewrite(t, path, whole)
	p := launch(t, nil, "serve", "--config", path)
	p.ingress, p.admin = p.url("ingress listening"), p.url("admin listening")
	p.awaitReady()

	release := w.proxy.hold(func(class) fault { return resetBefore }, allClasses...)
	for _, c := range []class{popSource, popRetry, popDead} {
		w.proxy.next(c)
	}
	eventually(t, "degraded", func() (bool, string) {
		status, body := get(t, p.admin+"/readyz")
		return status == http.StatusOK && strings.HasPrefix(body, "degraded\nqueen: cannot reach Queen") && strings.Contains(body, "\ndispatch: route"), fmt.Sprint(status, " ", body)
	})
	p.accepted(w.path(), "1", `{"n":1}`)
	more := fmt.Sprintf("  - {name: %s, scheme: github, secrets: [%q]}\ntargets:", w.name("more"), hexSecret)
	rewrite(t, path, replaceOnce(t, whole, "targets:", more))
	eventually(t, "a source that does not spool cannot accept", func() (bool, string) {
		status, body := get(t, p.admin+"/readyz")
		return status == http.StatusServiceUnavailable && strings.HasPrefix(body, "queen: "), fmt.Sprint(status, " ", body)
	})
	release()
	eventually(t, "ready", func() (bool, string) {
		status, body := get(t, p.admin+"/readyz")
		return status == http.StatusOK && body == "ready\n", fmt.Sprint(status, " ", body)
	})
	f.next()
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestPausedTimersAndKVLoseNothing: an operator switches Queen's timers and KV
// off. Webhooks are accepted and delivered; what fails is neither lost nor
// called again meanwhile; /readyz says why, and all goes on afterwards.
func TestPausedTimersAndKVLoseNothing(t *testing.T) {
	t.Parallel()
	w, f := newFaultyWorld(t), newTarget(t, failsAsTold)
	p := w.ready(w.route("github", hexSecret, f.URL, "    retry: {backoff: [1s], jitter: none}\n"))
	queue := w.name("main")
	switchedOff := func(c class) fault {
		if c == transaction {
			return fault{name: "timers_disabled", unsent: true, reply: fixed(403, `{"success":false,"error":"timers are switched off","reason":"timers_disabled","results":[]}`)}
		}
		return fault{name: "kv_disabled", unsent: true, reply: fixed(503, `{"error":"kv_disabled","reason":"kv_paused","detail":"switched off"}`, "Retry-After", "1")}
	}
	p.accepted(w.path(), "before", `{"before":1}`)
	f.next() // it has read what is paused: before that it would take nothing
	release := w.proxy.hold(switchedOff, transaction, kv, counts, timers, cancel)
	p.accepted(w.path(), "fails", `{"fail":1}`)
	eventually(t, "/readyz says why", func() (bool, string) {
		status, body := get(t, p.admin+"/readyz")
		return status == http.StatusOK && strings.HasPrefix(body, "degraded\n") && strings.Contains(body, "timers_disabled") &&
			strings.Contains(body, "pauses: what others paused is not known") && strings.Contains(body, "kv_disabled"), fmt.Sprint(status, " ", body)
	})
	if _, metrics := get(t, p.admin+"/metrics"); !strings.Contains(metrics, "\nqueenbridge_ready 1\n") || strings.Contains(metrics, "\nqueenbridge_problems 0\n") {
		t.Error("the metrics do not say that the bridge is ready and has problems")
	}
	p.accepted(w.path(), "later", `{"later":1}`)
	w.proxy.await(t, transaction, len(w.proxy.seen(transaction))+4, nil)
	if n := len(f.seen()); n > 3 {
		t.Errorf("%d calls while settles are refused", n-1)
	}
	release()
	p.drained(queue, queue, patient)
	f.attempts(t, `{"fail":1}`, 2)
	f.attempts(t, `{"later":1}`, 1)
	eventually(t, "ready", func() (bool, string) {
		status, body := get(t, p.admin+"/readyz")
		return status == http.StatusOK && body == "ready\n", fmt.Sprint(status, " ", body)
	})
	if _, metrics := get(t, p.admin+"/metrics"); !strings.Contains(metrics, "\nqueenbridge_problems 0\n") {
		t.Error("the metrics still count problems")
	}
}

// TestPausePropagatesBetweenProcesses: two bridges share a Queen; the target of
// one of them answers 410, and both stop; a restart changes nothing.
func TestPausePropagatesBetweenProcesses(t *testing.T) {
	t.Parallel()
	w := newFaultyWorld(t)
	gone := make(chan struct{}, 1)
	f := newTarget(t, func(_ context.Context, c call) int {
		if strings.Contains(string(c.body), "gone") {
			gone <- struct{}{}
			return http.StatusGone
		}
		return http.StatusOK
	})
	config := w.route("github", hexSecret, f.URL, "")
	first, second := w.ready(config), w.ready(config)
	first.accepted(w.path(), "1", `{"gone":1}`)
	<-gone
	first.accepted(w.path(), "2", `{"waits":1}`)
	paused := fmt.Sprintf(`queenbridge_dispatch_paused{kind="target",name="%s"} 1`, w.name("main"))
	shows := func(p *process) func() (bool, string) {
		return func() (bool, string) {
			_, metrics := get(t, p.admin+"/metrics")
			return strings.Contains(metrics, paused), ""
		}
	}
	eventually(t, "the first bridge pauses", shows(first))
	eventually(t, "the second bridge pauses", shows(second))
	first.stop()
	second.kill()
	third := w.ready(config)
	eventually(t, "a new bridge pauses", shows(third))
	if n := len(f.seen()); n > 2 { // the second event may have been on its way
		t.Errorf("%d calls of a target that is gone", n)
	}
}
