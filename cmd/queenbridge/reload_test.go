package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// rewrite replaces a file as editors do: another one takes its name.
func rewrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// logged waits for a record of this message with this text in it.
func (p *process) logged(msg, text string) {
	p.t.Helper()
	p.await(msg+" … "+text, func(line string) bool {
		return strings.Contains(line, `"msg":"`+msg+`"`) && strings.Contains(line, text)
	})
}

func (p *process) githubAs(secret, path, id string) int {
	status, _, _ := p.post(webhook{scheme: "github", secret: secret, path: path, body: []byte(`{"a":1}`), header: http.Header{"X-Github-Delivery": {id}}})
	return status
}

// resent is githubAs as a provider does it: through faults a push may need
// longer than its sender waits, and after a 503 it comes again.
func (p *process) resent(secret, path, id string) (status int) {
	p.t.Helper()
	within(p.t, 2*patient, "webhook "+id+" is answered for good", func() (bool, string) {
		status = p.githubAs(secret, path, id)
		return status != http.StatusServiceUnavailable || !faulty(), fmt.Sprint(status)
	})
	return status
}

// TestSecretsRotateUnderLoad: the secret in a file is replaced twice while
// webhooks arrive, new beside old, then new alone: nobody gets a 401.
func TestSecretsRotateUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	newest, oldest := filepath.Join(w.dir, "newest"), filepath.Join(w.dir, "oldest")
	rewrite(t, newest, "secret-one\n")
	rewrite(t, oldest, "secret-one\n")
	p := w.start(fmt.Sprintf("sources:\n  - {name: %s, scheme: github, secrets: [\"${file:newest}\", \"${file:oldest}\"]}\n", w.name("main")))

	var sends atomic.Pointer[string] // what the provider signs with
	first, second := "secret-one", "secret-two"
	sends.Store(&first)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var refused, accepted atomic.Int64
	for sender := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if status := p.resent(*sends.Load(), w.path(), fmt.Sprintf("%d-%d", sender, i)); status == http.StatusOK {
					accepted.Add(1)
				} else {
					refused.Add(1)
				}
			}
		})
	}
	rewrite(t, newest, "secret-two\n")
	p.logged("sources reloaded", w.name("main"))
	sends.Store(&second)
	enough := accepted.Load() + 50
	eventually(t, "webhooks with the new secret", func() (bool, string) { return accepted.Load() > enough, "" })
	rewrite(t, oldest, "secret-two\n")
	eventually(t, "the old secret is refused", func() (bool, string) {
		status := p.githubAs(first, w.path(), "old")
		return status == http.StatusUnauthorized, fmt.Sprint(status)
	})
	close(stop)
	wg.Wait()
	if refused.Load() != 0 || accepted.Load() < 50 {
		t.Errorf("%d webhooks were refused, %d accepted", refused.Load(), accepted.Load())
	}
	if log := p.log(); strings.Contains(log, first) || strings.Contains(log, second) {
		t.Error("the log shows a secret")
	}
}

// TestBrokenFileKeepsServing: every problem is logged, the running sources
// stay; the next good file counts.
func TestBrokenFileKeepsServing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	source := func(name string) string {
		return fmt.Sprintf("  - {name: %s, scheme: github, secrets: [secret-one]}\n", name)
	}
	p := w.start("sources:\n" + source(w.name("main")))
	path := filepath.Join(w.dir, "bridge.yaml")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, path, string(good)+"  - {name: Bad Name, scheme: nonsense}\nlanes: 3\n")
	p.logged("configuration not reloaded: the running one stays", "scheme")
	p.logged("configuration not reloaded: the running one stays", "lanes")
	rewrite(t, path, "{{{")
	p.logged("configuration not reloaded: the running one stays", "bridge.yaml:1")
	if status := p.resent("secret-one", w.path(), "1"); status != http.StatusOK {
		t.Errorf("after broken files: %d", status)
	}
	rewrite(t, path, string(good)+source(w.name("more")))
	p.logged("sources reloaded", w.name("more"))
	if status := p.resent("secret-one", "/in/"+w.name("more"), "2"); status != http.StatusOK {
		t.Errorf("the source that was added: %d", status)
	}
	rewrite(t, path, strings.ReplaceAll(string(good), w.name("main"), w.name("other")))
	eventually(t, "the source that was removed is gone", func() (bool, string) {
		status := p.githubAs("secret-one", w.path(), "3")
		return status == http.StatusNotFound, fmt.Sprint(status)
	})
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestWhatNeedsARestartIsNamed: SIGHUP answers, and the bridge runs on.
func TestWhatNeedsARestartIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.start(w.route("github", "secret-one", "http://127.0.0.1:9/", ""))
	path := filepath.Join(w.dir, "bridge.yaml")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	hangUp := func() {
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	hangUp()
	p.logged("configuration reloaded: nothing changed", "")
	rewrite(t, path, "stop_timeout: 11s\ndispatch: {max_in_flight: 7}\n"+string(good))
	p.logged("configuration changed where only a restart applies it; running on as before",
		`"fields":["stop_timeout","dispatch.max_in_flight"]`)
	if status := p.resent("secret-one", w.path(), "1"); status != http.StatusOK {
		t.Errorf("after the change: %d", status)
	}
}

func TestRestartChanges(t *testing.T) {
	t.Parallel()
	base := func() bridge.Config {
		return bridge.Config{
			StopTimeout: time.Second, Queen: bridge.QueenConfig{URLs: []string{"http://a"}},
			Sources: []bridge.Source{{Name: "s"}}, Targets: []bridge.Target{{Name: "t"}, {Name: "u"}}, Routes: []bridge.Route{{Name: "r"}},
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*bridge.Config)
		want   []string
	}{
		{"nothing", func(*bridge.Config) {}, nil},
		{"resources need none", func(c *bridge.Config) {
			c.Sources, c.Targets, c.Routes, c.Queues = nil, nil, []bridge.Route{{Name: "q"}}, []bridge.Queue{{Name: "q"}}
		}, nil},
		{"a listener", func(c *bridge.Config) { c.Ingress.Addr = ":1" }, []string{"ingress.addr"}},
		{"the nodes", func(c *bridge.Config) { c.Queen.URLs = nil }, []string{"queen.urls"}},
		{"a secret", func(c *bridge.Config) { c.Queen.Token = "x" }, []string{"queen.token"}},
		{"a token", func(c *bridge.Config) { c.Admin.Tokens = []bridge.AdminToken{{Name: "ci", Token: "x"}} }, []string{"admin.tokens[ci]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			after := base()
			tt.change(&after)
			if diff := cmp.Diff(tt.want, restartChanges(base(), after)); diff != "" {
				t.Errorf("restartChanges (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChangesOf(t *testing.T) {
	t.Parallel()
	before := bridge.Config{
		Sources: []bridge.Source{{Name: "a"}, {Name: "b", Secrets: []bridge.Secret{"x"}}, {Name: "c"}},
		Targets: []bridge.Target{{Name: "t"}, {Name: "u"}}, Routes: []bridge.Route{{Name: "r"}}, Queues: []bridge.Queue{{Name: "q"}},
	}
	after := bridge.Config{
		Sources: []bridge.Source{{Name: "a"}, {Name: "b", Secrets: []bridge.Secret{"y"}}, {Name: "d"}},
		Targets: []bridge.Target{{Name: "u"}, {Name: "t"}}, Routes: []bridge.Route{{Name: "r", Queue: "q"}},
	}
	got := changesOf(before, after)
	want := changes{
		sources: resourceDiff{added: []string{"d"}, changed: []string{"b"}, removed: []string{"c"}},
		routes:  resourceDiff{changed: []string{"r"}}, queues: resourceDiff{removed: []string{"q"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(changes{}, resourceDiff{})); diff != "" {
		t.Errorf("changesOf (-want +got):\n%s", diff)
	}
	if !changesOf(before, before).none() {
		t.Error("changesOf(the same) are some")
	}
}

// TestQueenTokenFollowsItsFile: Queen asks for another bearer token, and the
// file that holds it changes: webhooks and deliveries go on.
func TestQueenTokenFollowsItsFile(t *testing.T) {
	t.Parallel()
	broker, err := devbroker.Open(devbroker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close() })
	var asked atomic.Pointer[string]
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+*asked.Load() && r.URL.Path != "/health" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		broker.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { gate.CloseClientConnections(); gate.Close() })

	w, f := newWorld(t), newTarget(t, always(200))
	first, second := "token-one", "token-two"
	asked.Store(&first)
	rewrite(t, filepath.Join(w.dir, "token"), first+"\n")
	config := fmt.Sprintf("queen: {urls: [%q], token: \"${file:token}\"}\ningress: {addr: \"127.0.0.1:0\", enqueue_timeout: 2s}\nadmin: {addr: \"127.0.0.1:0\"}\n", gate.URL) +
		w.route("github", hexSecret, f.URL, "")
	path := filepath.Join(w.dir, "bridge.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, nil, "serve", "--config", path)
	p.ingress, p.admin = p.url("ingress listening"), p.url("admin listening")
	p.awaitReady()
	if status := p.githubAs(hexSecret, w.path(), "1"); status != http.StatusOK {
		t.Fatalf("answered %d", status)
	}
	f.next()
	asked.Store(&second)
	if status := p.githubAs(hexSecret, w.path(), "2"); status != http.StatusServiceUnavailable {
		t.Errorf("with the old token a webhook is answered %d, want 503", status)
	}
	rewrite(t, filepath.Join(w.dir, "token"), second+"\n")
	p.logged("queen token reloaded", "")
	eventually(t, "webhooks are stored with the new token", func() (bool, string) {
		status := p.githubAs(hexSecret, w.path(), "2")
		return status == http.StatusOK, fmt.Sprint(status)
	})
	f.next()
	if log := p.log(); strings.Contains(log, first) || strings.Contains(log, second) {
		t.Error("the log holds a token")
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
