package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestRoutesAreReloadedUnderLoad: while webhooks arrive, one route gets
// another target and another limit, again and again, by a changed file and by
// SIGHUP. Nothing is lost, nothing of the other route is called twice, and
// nothing of the changed one, for its calls end before the change counts.
func TestRoutesAreReloadedUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slowly := func(ctx context.Context, _ call) int {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
		return 200
	}
	steady, first, second := newTarget(t, slowly), newTarget(t, slowly), newTarget(t, slowly)
	config := func(target string, concurrency int) string {
		return fmt.Sprintf(`
sources:
  - {name: %[1]s, scheme: github, secrets: [%[2]q]}
targets:
  - {name: steady-%[3]s, http: {url: %[4]q}}
  - {name: first-%[3]s, http: {url: %[5]q}}
  - {name: second-%[3]s, http: {url: %[6]q}}
routes:
  - {name: steady-%[3]s, queue: %[1]s, target: steady-%[3]s}
  - {name: moving-%[3]s, queue: %[1]s, target: %[7]s-%[3]s, concurrency: %[8]d}
`, w.name("main"), hexSecret, w.id, steady.URL, first.URL, second.URL, target, concurrency)
	}
	p := w.start(config("first", 4))
	path := filepath.Join(w.dir, "bridge.yaml")
	running, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(running), "\nsources:")

	stop := make(chan struct{})
	var sent atomic.Int64
	var wg sync.WaitGroup
	for sender := range 3 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if status := p.resent(hexSecret, w.path(), fmt.Sprintf("%d-%d", sender, i)); status != http.StatusOK {
					t.Errorf("answered %d", status)
					return
				}
				sent.Add(1)
			}
		})
	}
	const reloads = 6
	for n := range reloads {
		enough := sent.Load() + 15
		eventually(t, "webhooks", func() (bool, string) { return sent.Load() >= enough || t.Failed(), "" })
		rewrite(t, path, head+config([]string{"second", "first"}[n%2], 5+n))
		if n%2 == 0 {
			if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "the reload", func() (bool, string) {
			return strings.Count(p.log(), `"msg":"routes reloaded"`) > n, p.log()
		})
	}
	close(stop)
	wg.Wait()
	want := int(sent.Load())
	within(t, leaseOver, "every event at both routes", func() (bool, string) {
		a, b, c := len(steady.seen()), len(first.seen()), len(second.seen())
		return a >= want && b+c >= want, fmt.Sprintf("%d sent, %d steady, %d first, %d second", want, a, b, c)
	})
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for name, calls := range map[string][]call{"steady": steady.seen(), "moving": append(first.seen(), second.seen()...)} {
		if len(calls) != want {
			t.Errorf("%s: %d calls for %d events", name, len(calls), want)
		}
	}
	if len(first.seen()) == 0 || len(second.seen()) == 0 {
		t.Error("one of the two targets was never called: the test proves nothing")
	}
}

// TestTargetSecretsFollowTheirFile: the credential and the signing secret of a
// target are files; the next call has the new ones, and a route that fails
// meanwhile goes on failing.
func TestTargetSecretsFollowTheirFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := newTarget(t, always(200))
	rewrite(t, filepath.Join(w.dir, "token"), "token-one\n")
	p := w.start(strings.Replace(w.route("github", hexSecret, f.URL, ""), "\nroutes:",
		"\n    auth: {type: bearer, token: \"${file:token}\"}\nroutes:", 1))
	deliver := func(id string) string {
		p.storedAs(w.path(), id, `{"a":1}`)
		return f.next().header.Get("Authorization")
	}
	if got := deliver("1"); got != "Bearer token-one" {
		t.Errorf("Authorization = %q", got)
	}
	rewrite(t, filepath.Join(w.dir, "token"), "token-two\n")
	p.logged("targets reloaded", w.name("main"))
	if got := deliver("2"); got != "Bearer token-two" {
		t.Errorf("Authorization = %q", got)
	}
	if log := p.log(); strings.Contains(log, "token-one") || strings.Contains(log, "token-two") || strings.Contains(log, "routes reloaded") {
		t.Error("the log shows a secret, or the route was touched")
	}
}

// TestAddedRouteBeginsWithItsQueues: a route and its source appear in the file;
// its retry and dead queue are there, with the options the bridge gives them.
// Then it goes, and its metrics with it.
func TestAddedRouteBeginsWithItsQueues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := newTarget(t, func(_ context.Context, c call) int {
		if c.attempt == "1" {
			return 422
		}
		return 200
	})
	p := w.start("")
	path := filepath.Join(w.dir, "bridge.yaml")
	empty, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, path, string(empty)+w.route("github", hexSecret, f.URL, ""))
	p.logged("routes reloaded", w.name("main"))
	eventually(t, "the new source", func() (bool, string) {
		status, _, _ := p.github(w.path(), "1", `{"a":1}`)
		return status == http.StatusOK, fmt.Sprint(status)
	})
	f.next()
	eventually(t, "the dead letter", func() (bool, string) {
		letters := p.deadLetters(w.name("main"))
		return len(letters) == 1, fmt.Sprint(letters)
	})
	for _, queue := range []string{"queenbridge-retry.", "queenbridge-dead."} {
		if status, body := get(t, p.queen+"/api/v1/resources/queues/"+queue+w.name("main")); status != http.StatusOK {
			t.Errorf("%s: %d %s", queue, status, body)
		}
	}
	_, metrics := get(t, p.admin+"/metrics")
	label := fmt.Sprintf(`route="%s"`, w.name("main"))
	if !strings.Contains(metrics, label) {
		t.Error("no metrics of the route")
	}
	rewrite(t, path, string(empty))
	p.logged("route ended", w.name("main"))
	if _, metrics := get(t, p.admin+"/metrics"); strings.Contains(metrics, label) {
		t.Error("metrics of the route that went")
	}
	p.awaitReady()
}
