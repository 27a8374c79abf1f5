package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestHangingTargetDelaysNobody has one target hang and looks at the other
// route of the same queue: its median may grow by less than 100 ms.
func TestHangingTargetDelaysNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fine := newTarget(t, always(200))
	hang := newTarget(t, func(ctx context.Context, _ call) int { <-ctx.Done(); return 200 })
	p := w.start(fmt.Sprintf(`
sources:
  - {name: %[1]s, scheme: github, secrets: [%[2]q]}
targets:
  - {name: fine-%[5]s, http: {url: %[3]q}}
  - {name: hang-%[5]s, http: {url: %[4]q, timeout: 20s}, concurrency: 1000}
routes:
  - {name: fine-%[5]s, queue: %[1]s, target: fine-%[5]s}
  - {name: hang-%[5]s, queue: %[1]s, target: hang-%[5]s, detach_after: 0s}
`, w.name("main"), hexSecret, fine.URL, hang.URL, w.id))
	var delays []time.Duration
	for i := range 300 {
		sent := time.Now()
		if status, _, _ := p.github(w.path(), fmt.Sprint(i), fmt.Sprintf(`{"n":%d}`, i)); status != 200 {
			t.Fatalf("answered %d", status)
		}
		delays = append(delays, fine.next().at.Sub(sent))
	}
	if len(hang.seen()) == 0 {
		t.Fatal("the hanging target was never called: the test proves nothing")
	}
	slices.Sort(delays)
	if median := delays[len(delays)/2]; median > 100*time.Millisecond {
		t.Errorf("beside a hanging target a delivery takes %s (median), want less than 100ms", median)
	}
	p.kill()
}

// keyed is a configuration whose partition is the body's key.
func (w *world) keyed(url, more string) string {
	return strings.Replace(w.route("github", hexSecret, url, more), "secrets:", `partition: "body:key", secrets:`, 1)
}

// TestFailingKeyDelaysNobody has one key fail for ever, with ordering none.
func TestFailingKeyDelaysNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := newTarget(t, func(_ context.Context, c call) int {
		if bytes.Contains(c.body, []byte(`"bad":1`)) {
			return 500
		}
		return 200
	})
	p := w.start(w.keyed(f.URL, "    retry: {backoff: [10m]}\n"))
	p.github(w.path(), "bad", `{"key":"a","bad":1}`)
	f.next()
	for i := range 20 {
		p.github(w.path(), fmt.Sprint(i), fmt.Sprintf(`{"key":"a","n":%d}`, i))
		if c := f.next(); !bytes.Contains(c.body, fmt.Appendf(nil, `"n":%d`, i)) {
			t.Errorf("call %s, want event %d of the same key", c.body, i)
		}
	}
	p.stop()
}

// TestFailingKeyDelaysOnlyItsPartition has one key fail a while, with ordering
// partition: its later events wait and keep their order, other keys flow.
func TestFailingKeyDelaysOnlyItsPartition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	healed := make(chan struct{})
	f := newTarget(t, func(_ context.Context, c call) int {
		select {
		case <-healed:
			return 200
		default:
		}
		if bytes.Contains(c.body, []byte(`"key":"a","n":0`)) {
			return 500
		}
		return 200
	})
	p := w.start(w.keyed(f.URL, "    ordering: partition\n    retry: {backoff: [200ms], jitter: none}\n"))
	for i := range 5 {
		p.github(w.path(), fmt.Sprint("a", i), fmt.Sprintf(`{"key":"a","n":%d}`, i))
	}
	for i := range 5 {
		p.github(w.path(), fmt.Sprint("b", i), fmt.Sprintf(`{"key":"b","n":%d}`, i))
	}
	var b []string
	for len(b) < 5 {
		if c := f.next(); bytes.Contains(c.body, []byte(`"key":"b"`)) {
			b = append(b, string(c.body))
		} else if !bytes.Contains(c.body, []byte(`"n":0`)) {
			t.Fatalf("called with %s while the event before it fails", c.body)
		}
	}
	if !slices.IsSorted(b) {
		t.Errorf("the other key's events came as %v", b)
	}
	close(healed)
	for i := 0; i < 5; {
		switch c := f.next(); {
		case bytes.Contains(c.body, fmt.Appendf(nil, `"n":%d`, i)):
			i++
		case bytes.Contains(c.body, []byte(`"n":0`)): // calls from before it healed
		default:
			t.Fatalf("called with %s, want event %d of the key", c.body, i)
		}
	}
	p.stop()
}

// TestSlowAttemptDoesNotHoldItsPartition has one attempt run for 30 s: the
// next event of its partition arrives within 3 s, and the slow one is not
// called again.
func TestSlowAttemptDoesNotHoldItsPartition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := newTarget(t, func(ctx context.Context, c call) int {
		if bytes.Contains(c.body, []byte(`"slow":1`)) {
			select {
			case <-ctx.Done():
			case <-time.After(30 * time.Second):
			}
		}
		return 200
	})
	config := strings.Replace(w.keyed(f.URL, ""), fmt.Sprintf("{url: %q}", f.URL), fmt.Sprintf("{url: %q, timeout: 40s}", f.URL), 1)
	p := w.start(config)
	p.github(w.path(), "slow", `{"key":"a","slow":1}`)
	f.next()
	sent := time.Now()
	p.github(w.path(), "next", `{"key":"a","n":1}`)
	if c := f.next(); c.at.Sub(sent) > 3*time.Second || !bytes.Contains(c.body, []byte(`"n":1`)) {
		t.Errorf("the next event of the partition was called after %s with %s, want within 3s", c.at.Sub(sent), c.body)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// TestStopDrains stops the bridge while a call runs: the call ends well, its
// event is settled, the exit code is 0, and nothing is called again.
func TestStopDrains(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release := make(chan struct{})
	f := newTarget(t, func(context.Context, call) int { <-release; return 200 })
	p := w.start(w.route("github", hexSecret, f.URL, ""))
	p.github(w.path(), "d", `{"n":1}`)
	f.next()
	ended := make(chan int, 1)
	go func() { ended <- p.stop() }()
	eventually(t, "the bridge says that it is stopping", func() (bool, string) {
		status, body := get(t, p.admin+"/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(body, "stopping"), body
	})
	close(release)
	if code := <-ended; code != 0 {
		t.Fatalf("exit code %d, want 0", code)
	}
	p = w.start(w.route("github", hexSecret, f.URL, ""))
	p.github(w.path(), "after", `{"n":2}`)
	if c := f.next(); string(c.body) != `{"n":2}` {
		t.Errorf("after the restart the function got %s, want only the new event", c.body)
	}
	p.stop()
}
