package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/signing"
	"github.com/rogpeppe/go-internal/testscript"
)

// asProgram makes the test binary behave as queenbridge: the tests run the
// real program in a process of its own, race detector included.
const asProgram = "QUEENBRIDGE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "1" {
		os.Exit(Main())
	}
	testscript.Main(m, map[string]func(){"queenbridge": func() { os.Exit(Main()) }})
}

// realQueen is the URL of a real Queen. When it is set the same tests run on
// that instead of the embedded broker (make test-real).
func realQueen() string { return os.Getenv("QUEEN_REAL_URL") }

// throughFaults lets every test reach its broker through a faultProxy that
// disturbs a part of all requests (make test-real): what a test promises
// holds with a bad network too. It needs QUEEN_REAL_URL, of whatever broker.
const throughFaults = "QUEENBRIDGE_TEST_FAULTS"

// faulty says that every test's requests are disturbed: what comes at once on
// a good network may then need several tries.
func faulty() bool { return os.Getenv(throughFaults) != "" }

// patient bounds every wait for something that should happen soon: the first
// timer of a real Queen may fire 28 s late (measured 1.3.0), and machines are
// slow.
const patient = 60 * time.Second

// leaseOver bounds the wait for what a killed process held: its leases run out
// after 60 s at most.
const leaseOver = 100 * time.Second

// world is one test's bridge: its names are its own, so that tests can share
// a real Queen.
type world struct {
	t    *testing.T
	id   string // suffix of every name
	dir  string
	data string
	url  string // of a broker that is not embedded, as the bridge reaches it
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	return &world{t: t, id: strings.ToLower(rand.Text()[:8]), dir: dir, data: filepath.Join(dir, "data")}
}

// name makes a name of this test's own.
func (w *world) name(s string) string { return s + "-" + w.id }

// queen is the configuration's queen section.
func (w *world) queen() string {
	if w.url == "" {
		w.url = w.broker()
	}
	if w.url != "" {
		return fmt.Sprintf("queen: {urls: [%q]}\n", w.url)
	}
	return fmt.Sprintf("queen: {embedded: %q, embedded_addr: \"127.0.0.1:0\"}\n", w.data)
}

// broker is the URL of the broker that all tests share, or "": each embeds its
// own.
func (w *world) broker() string {
	w.t.Helper()
	if !faulty() {
		return realQueen()
	}
	if realQueen() == "" {
		w.t.Fatalf("%s needs a broker: set QUEEN_REAL_URL", throughFaults)
	}
	seed := uint64(time.Now().UnixNano())
	w.t.Logf("faults with seed %d", seed)
	proxy := newFaultProxy(w.t, realQueen())
	proxy.randomly(seed, 0.15, passing())
	return proxy.URL
}

// process is one running queenbridge.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}
	err  error // after done

	mu    sync.Mutex
	lines []string
	grew  chan struct{}

	ingress, admin, queen string // URLs
	config                string // its file
}

// start runs `queenbridge serve` with this configuration until it listens.
// The configuration's own part comes without queen and listeners.
func (w *world) start(config string, env ...string) *process {
	w.t.Helper()
	path := filepath.Join(w.dir, "bridge.yaml")
	whole := w.queen() + "ingress: {addr: \"127.0.0.1:0\"}\nadmin: {addr: \"127.0.0.1:0\"}\n" + config
	if err := os.WriteFile(path, []byte(whole), 0o600); err != nil {
		w.t.Fatal(err)
	}
	p := launch(w.t, env, "serve", "--config", path)
	p.ingress = p.url("ingress listening")
	p.admin = p.url("admin listening")
	if p.queen = realQueen(); p.queen == "" {
		p.queen = p.url("embedded broker listening")
	}
	p.awaitReady()
	return p
}

// launch starts the program; the test stops it in the end.
func launch(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, done: make(chan struct{}), grew: make(chan struct{})}
	p.cmd = exec.Command(exe, args...)
	p.cmd.Env = append(append(os.Environ(), asProgram+"=1"), env...)
	out, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout = p.cmd.Stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.read(out)
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("log of the bridge:\n%s", p.log())
		}
	})
	return p
}

func (p *process) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		close(p.grew)
		p.grew = make(chan struct{})
		p.mu.Unlock()
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// await waits for a log line that match accepts.
func (p *process) await(what string, match func(line string) bool) string {
	p.t.Helper()
	deadline := time.After(patient)
	for seen := 0; ; {
		p.mu.Lock()
		lines, grew := p.lines, p.grew
		p.mu.Unlock()
		for ; seen < len(lines); seen++ {
			if match(lines[seen]) {
				return lines[seen]
			}
		}
		select {
		case <-grew:
		case <-p.done:
			p.mu.Lock()
			rest := p.lines[seen:]
			p.mu.Unlock()
			if len(rest) > 0 {
				continue
			}
			p.t.Fatalf("the bridge ended (%v) before it logged %s:\n%s", p.err, what, p.log())
		case <-deadline:
			p.t.Fatalf("no log line with %s after %s:\n%s", what, patient, p.log())
		}
	}
}

// url is the url attribute of a log record.
func (p *process) url(msg string) string {
	p.t.Helper()
	line := p.await(msg, func(line string) bool { return strings.Contains(line, `"msg":"`+msg+`"`) })
	var record struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal([]byte(line), &record); err != nil {
		p.t.Fatalf("log line %q: %v", line, err)
	}
	return record.URL
}

// awaitReady waits until /readyz says ready, not degraded.
func (p *process) awaitReady() {
	p.t.Helper()
	eventually(p.t, "the bridge is ready", func() (bool, string) {
		status, body := get(p.t, p.admin+"/readyz")
		return status == http.StatusOK && (body == "ready\n" || faulty()), body
	})
}

// kill ends the process as a crash would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop asks the process to drain, and returns its exit code.
func (p *process) stop() int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	return p.wait()
}

func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(2 * patient):
		p.t.Fatalf("the bridge did not end:\n%s", p.log())
	}
	return p.cmd.ProcessState.ExitCode()
}

// eventually waits for a condition of another process, looking often.
func eventually(t *testing.T, what string, ok func() (bool, string)) {
	t.Helper()
	within(t, patient, what, ok)
}

// within is eventually with a bound of its own.
func within(t *testing.T, bound time.Duration, what string, ok func() (bool, string)) {
	t.Helper()
	deadline := time.Now().Add(bound)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		done, state := ok()
		if done {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %s in vain: %s; last: %s", bound, what, state)
		}
		<-tick.C
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

// call is one call the function got.
type call struct {
	at      time.Time
	id      string
	attempt string
	header  http.Header
	body    []byte
}

// target is a function that records its calls.
type target struct {
	*httptest.Server
	t     *testing.T
	calls chan call

	mu  sync.Mutex
	all []call
}

// newTarget starts a function; answer decides what each call gets. It may
// block; the request's context ends when the caller is gone.
func newTarget(t *testing.T, answer func(ctx context.Context, c call) int) *target {
	t.Helper()
	f := &target{t: t, calls: make(chan call, 10_000)}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		c := call{time.Now(), r.Header.Get("webhook-id"), r.Header.Get("Queen-Attempt"), r.Header.Clone(), body}
		f.mu.Lock()
		f.all = append(f.all, c)
		f.mu.Unlock()
		f.calls <- c
		w.WriteHeader(answer(r.Context(), c))
	}))
	t.Cleanup(func() { f.CloseClientConnections(); f.Close() })
	return f
}

func always(status int) func(context.Context, call) int {
	return func(context.Context, call) int { return status }
}

// next waits for a call.
func (f *target) next() call {
	f.t.Helper()
	return f.nextWithin(patient)
}

func (f *target) nextWithin(bound time.Duration) call {
	f.t.Helper()
	select {
	case c := <-f.calls:
		return c
	case <-time.After(bound):
		f.t.Fatalf("the function was not called within %s", bound)
		return call{}
	}
}

// seen are all calls so far.
func (f *target) seen() []call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]call(nil), f.all...)
}

// webhook is a signed request for a source.
type webhook struct {
	scheme, secret string
	path, query    string
	header         http.Header
	body           []byte
}

// post signs and sends a webhook.
func (p *process) post(h webhook) (int, http.Header, string) {
	p.t.Helper()
	return p.send(p.sign(h))
}

// stored sends a webhook that must be stored: it is answered 200 at once.
// Through faults a push may need longer than its sender waits: then the answer
// is 503, and the same request comes again, as a provider's does.
func (p *process) stored(h webhook) (header http.Header, answer string) {
	p.t.Helper()
	r := p.sign(h)
	within(p.t, 2*patient, "a webhook is stored", func() (bool, string) {
		var status int
		status, header, answer = p.send(r)
		if status != http.StatusOK && (status != http.StatusServiceUnavailable || !faulty()) {
			p.t.Fatalf("a webhook for %s is answered %d %s, want 200", h.path, status, answer)
		}
		return status == http.StatusOK, fmt.Sprint(status, " ", answer)
	})
	return header, answer
}

func (p *process) sign(h webhook) *signing.Request {
	p.t.Helper()
	r := &signing.Request{Method: http.MethodPost, Path: h.path, RawQuery: h.query, Header: http.Header{}, Body: h.body, Now: time.Now()}
	r.Header.Set("Content-Type", "application/json")
	for name, values := range h.header {
		r.Header[name] = values
	}
	if err := signing.Forge(signing.Options{Scheme: h.scheme, Secrets: []string{h.secret}}, r); err != nil {
		p.t.Fatal(err)
	}
	return r
}

func (p *process) send(r *signing.Request) (int, http.Header, string) {
	p.t.Helper()
	url := p.ingress + r.Path
	if r.RawQuery != "" {
		url += "?" + r.RawQuery
	}
	req, err := http.NewRequestWithContext(p.t.Context(), r.Method, url, bytes.NewReader(r.Body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header = r.Header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, err.Error()
	}
	return resp.StatusCode, resp.Header, string(body)
}

// deadLetter is one row of Queen's DLQ.
type deadLetter struct {
	Error string          `json:"errorMessage"`
	Data  json.RawMessage `json:"data"`
}

// deadLetters are the dead letters of a route, as any Queen client lists them.
func (p *process) deadLetters(route string) []deadLetter {
	p.t.Helper()
	_, body := get(p.t, p.queen+"/api/v1/dlq?limit=1000&queue=queenbridge-dead."+route)
	var answer struct{ Messages []deadLetter }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		p.t.Fatalf("dlq answer %q: %v", body, err)
	}
	return answer.Messages
}

// push pushes as any Queen client would.
func (p *process) push(queue, partition, id, payload string) {
	p.t.Helper()
	body := fmt.Sprintf(`{"items":[{"queue":%q,"partition":%q,"transactionId":%q,"payload":%s}]}`, queue, partition, id, payload)
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.queen+"/api/v1/push", strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusCreated || !bytes.Contains(answer, []byte(`"queued"`)) {
		p.t.Fatalf("push: %s %s", resp.Status, answer)
	}
}
