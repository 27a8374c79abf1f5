// Package examples_test runs every example against the program as it is
// built, with `queenbridge send` as the sender.
package examples_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/dispatch/lambdatarget/lambdatest"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const patient = 30 * time.Second

var binary string // built once, by TestMain

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "queenbridge-examples")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "queenbridge")
	build := exec.Command("go", "build", "-o", binary, "../cmd/queenbridge")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	code := 1
	if build.Run() == nil {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// call is what a function got.
type call struct {
	header http.Header
	body   string
}

func function(t *testing.T, status func(call) int) (url string, calls <-chan call) {
	t.Helper()
	c := make(chan call, 1000)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got := call{r.Header, string(body)}
		w.WriteHeader(status(got))
		c <- got
	}))
	t.Cleanup(srv.Close)
	return srv.URL, c
}

func ok(call) int { return http.StatusOK }

func next(t *testing.T, calls <-chan call) call {
	t.Helper()
	select {
	case c := <-calls:
		return c
	case <-time.After(patient):
		t.Fatal("the function was not called")
		return call{}
	}
}

// example is a running example.
type example struct {
	t      *testing.T
	config string
	env    []string
	addrs  map[string]string // log message → URL
}

// serve runs `queenbridge serve` on an example's configuration; only where it
// listens and stores is the test's.
func serve(t *testing.T, name string, env ...string) *example {
	t.Helper()
	e := &example{t: t, config: filepath.Join(name, "bridge.yaml"), addrs: make(map[string]string)}
	e.env = append(append(os.Environ(), env...), "QUEENBRIDGE_QUEEN_EMBEDDED="+t.TempDir(), "QUEENBRIDGE_QUEEN_EMBEDDED_ADDR=127.0.0.1:0",
		"QUEENBRIDGE_INGRESS_ADDR=127.0.0.1:0", "QUEENBRIDGE_ADMIN_ADDR=127.0.0.1:0")
	cmd := exec.Command(binary, "serve", "--config", e.config)
	cmd.Env = e.env
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, ended := make(chan string, 10_000), make(chan error, 1)
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
		ended <- cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			t.Errorf("queenbridge serve: %v", err)
		}
	})
	e.listening(lines)
	return e
}

// listening reads the log until the bridge is connected and knows its URLs.
func (e *example) listening(lines <-chan string) {
	e.t.Helper()
	deadline := time.After(patient)
	var log []string
	for {
		select {
		case line := <-lines:
			log = append(log, line)
			var record struct{ Msg, URL string }
			if json.Unmarshal([]byte(line), &record) == nil {
				e.addrs[record.Msg] = record.URL
			}
			if _, up := e.addrs["queen connected"]; up {
				return
			}
		case <-deadline:
			e.t.Fatalf("the bridge is not up:\n%s", strings.Join(log, "\n"))
		}
	}
}

func (e *example) send(source, body string, more ...string) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), patient)
	defer cancel()
	args := append([]string{"send", "--config", e.config, "--source", source, "--data", body,
		"--url", e.addrs["ingress listening"] + "/in/" + source}, more...)
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = e.env
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("200 OK")) {
		e.t.Fatalf("queenbridge send: %v\n%s", err, out)
	}
}

// run runs a command over the admin API.
func (e *example) run(args ...string) string {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), patient)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(e.env, "QUEENBRIDGE_ENDPOINT="+e.addrs["admin listening"])
	out, err := cmd.CombinedOutput()
	if err != nil {
		e.t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// until repeats a command until its output holds a text.
func (e *example) until(what, text string, args ...string) {
	e.t.Helper()
	deadline := time.Now().Add(patient)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(e.run(args...), text) {
		if time.Now().After(deadline) {
			e.t.Fatalf("no %s", what)
		}
		<-tick.C
	}
}

// awaitMetric waits until the bridge shows a line among its metrics.
func (e *example) awaitMetric(line string) {
	e.t.Helper()
	deadline := time.Now().Add(patient)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		resp, err := http.Get(e.addrs["admin listening"] + "/metrics")
		if err != nil {
			e.t.Fatal(err)
		}
		metrics, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if strings.Contains(string(metrics), line+"\n") {
			return
		}
		if time.Now().After(deadline) {
			e.t.Fatalf("no metric %s", line)
		}
		<-tick.C
	}
}

func TestGitHubToHTTP(t *testing.T) {
	t.Parallel()
	url, calls := function(t, ok)
	e := serve(t, "github-to-http", "GITHUB_SECRET=s3cret", "FUNCTION_URL="+url)
	e.send("github", `{"zen":"Keep it logically awesome."}`)
	if c := next(t, calls); c.body != `{"zen":"Keep it logically awesome."}` || c.header.Get("X-GitHub-Event") == "" {
		t.Errorf("called with %q and X-GitHub-Event %q", c.body, c.header.Get("X-GitHub-Event"))
	}
}

func TestFanOut(t *testing.T) {
	t.Parallel()
	ciURL, ci := function(t, ok)
	auditURL, audit := function(t, func(c call) int {
		if c.header.Get("Queen-Attempt") == "1" {
			return http.StatusInternalServerError
		}
		return http.StatusOK
	})
	e := serve(t, "fan-out", "GITHUB_SECRET=s3cret", "CI_URL="+ciURL, "AUDIT_URL="+auditURL)
	e.send("github", `{"n":1}`)
	if c := next(t, ci); c.body != `{"n":1}` {
		t.Errorf("ci got %q", c.body)
	}
	first, second := next(t, audit), next(t, audit)
	if first.body != second.body || first.header.Get("Webhook-Id") != second.header.Get("Webhook-Id") {
		t.Errorf("audit's retry is %q under another id or body", second.body)
	}
	if len(ci) > 0 {
		t.Errorf("ci saw the retry of audit: %v", <-ci)
	}
}

func TestFilteredPushes(t *testing.T) {
	t.Parallel()
	deployURL, deploy := function(t, ok)
	triageURL, triage := function(t, ok)
	e := serve(t, "filtered-pushes", "GITHUB_SECRET=s3cret", "DEPLOY_URL="+deployURL, "TRIAGE_URL="+triageURL)
	const push, issues, pulls = "X-GitHub-Event: push", "X-GitHub-Event: issues", "X-GitHub-Event: pull_request"
	e.send("github", `{"ref":"refs/heads/try"}`, "--header", push)
	e.send("github", `{"ref":"refs/heads/main"}`, "--header", push)
	e.send("github", `{"action":"closed"}`, "--header", issues)
	e.send("github", `{"action":"opened","pull_request":{"draft":true}}`, "--header", pulls)
	e.send("github", `{"action":"opened","pull_request":{"draft":false}}`, "--header", pulls)
	if c := next(t, deploy); c.body != `{"ref":"refs/heads/main"}` || c.header.Get("X-GitHub-Event") != "push" {
		t.Errorf("deploy is called with %s", c.body)
	}
	if c := next(t, triage); c.body != `{"action":"opened","pull_request":{"draft":false}}` {
		t.Errorf("triage is called with %s", c.body)
	}
	// All are judged: what else was to come would be here.
	e.awaitMetric(`queenbridge_dispatch_filtered_total{route="main-to-deploy"} 4`)
	e.awaitMetric(`queenbridge_dispatch_filtered_total{route="opened-to-triage"} 4`)
	if len(deploy)+len(triage) > 0 {
		t.Errorf("%d more calls of deploy, %d of triage", len(deploy), len(triage))
	}
}

func TestOrderedPerRepository(t *testing.T) {
	t.Parallel()
	var made atomic.Int32
	url, calls := function(t, func(call) int {
		if made.Add(1) <= 2 {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	})
	e := serve(t, "ordered-per-repository", "GITHUB_SECRET=s3cret", "FUNCTION_URL="+url)
	for n := range 3 {
		e.send("github", fmt.Sprintf(`{"repository":{"full_name":"octo/a"},"n":%d}`, n))
	}
	var got []string
	for len(got) < 5 {
		got = append(got, next(t, calls).body)
	}
	if !slices.IsSorted(got) {
		t.Errorf("the repository's events came as %q, want them in order", got)
	}
}

func TestStandardWebhooksRelay(t *testing.T) {
	t.Parallel()
	const theirs, ours = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
	url, calls := function(t, ok)
	e := serve(t, "standard-webhooks-relay", "PARTNER_SECRET="+theirs, "ORDERS_SECRET="+ours, "ORDERS_URL="+url)
	const body = `{"type":"order.paid",  "data":{"id":"o-1"}}`
	e.send("partner", body)
	c := next(t, calls)
	if c.body != body {
		t.Errorf("the body %q arrives as %q", body, c.body)
	}
	for _, name := range []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"} {
		if n := len(c.header.Values(name)); n != 1 {
			t.Errorf("%d headers %s", n, name)
		}
	}
	for secret, proves := range map[string]bool{ours: true, theirs: false} {
		hook, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := hook.Verify([]byte(c.body), c.header); (err == nil) != proves {
			t.Errorf("the library says %v with our secret: %v", err, proves)
		}
	}
}

func TestDeadLetterRedrive(t *testing.T) {
	t.Parallel()
	var mended atomic.Bool
	url, calls := function(t, func(call) int {
		if mended.Load() {
			return http.StatusOK
		}
		return http.StatusUnprocessableEntity
	})
	e := serve(t, "dead-letter-redrive", "GITHUB_SECRET=s3cret", "FUNCTION_URL="+url)
	e.send("github", `{"action":"renamed"}`)
	refused := next(t, calls)
	e.until("a dead letter", "http_4xx", "dead-letters", "list", "github-to-function")
	mended.Store(true)
	if out := e.run("dead-letters", "redrive", "github-to-function", "--class", "http_4xx", "--dry-run"); !strings.Contains(out, "1") {
		t.Errorf("a dry run says %s", out)
	}
	e.run("dead-letters", "redrive", "github-to-function", "--class", "http_4xx", "--per-second", "10")
	again := next(t, calls)
	if again.body != refused.body || again.header.Get("Webhook-Id") != refused.header.Get("Webhook-Id") {
		t.Errorf("%q is delivered again as %q, under another id or body", refused.body, again.body)
	}
	if out := e.run("dead-letters", "list", "github-to-function"); strings.Contains(out, "http_4xx") {
		t.Errorf("still a dead letter: %s", out)
	}
}

func TestStripeToLambda(t *testing.T) {
	t.Parallel()
	fn := lambdatest.Start(t, lambdatest.Options{Bootstrap: lambdatest.Build(t, "./stripe-to-lambda/function", "lambda.norpc")})
	e := serve(t, "stripe-to-lambda", "STRIPE_SECRET=whsec_test", "FUNCTION_ARN=arn:aws:lambda:eu-west-1:123456789012:function:billing",
		"AWS_ENDPOINT_URL_LAMBDA="+lambdatest.Serve(t, fn).URL, "AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=key-of-nobody",
		"AWS_CONFIG_FILE=/nonexistent", "AWS_SHARED_CREDENTIALS_FILE=/nonexistent")
	e.send("stripe", `{"id":"evt_1","type":"invoice.paid","data":{"object":{"id":"in_1","amount_paid":4200}}}`)
	e.send("stripe", `{"id":"evt_2","type":"customer.created"}`)
	e.send("stripe", `{"id":"evt_3","type":"invoice.paid","data":{"object":{}}}`)
	// All three are answered; one of them is to come again.
	e.awaitMetric(`queenbridge_dispatch_retries_scheduled_total{route="stripe-to-billing"} 1`)
	if log := fn.Log(); strings.Count(log, "booked in_1 4200") != 1 || !strings.Contains(log, "failed: event evt_3 names no invoice") {
		t.Errorf("the function printed %s", log)
	}
}

func TestQueueToFunction(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	url, calls := function(t, ok)
	e := serve(t, "queue-to-function", "FUNCTION_URL="+url, "SIGNING_SECRET="+secret)
	const payload = `{"file": "a.jpg", "width": 200}`
	resp, err := http.Post(e.addrs["embedded broker listening"]+"/api/v1/push", "application/json",
		strings.NewReader(`{"items":[{"queue":"images","partition":"album-7","transactionId":"img-1","payload":`+payload+`}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	c := next(t, calls)
	if c.body != payload || c.header.Get("Content-Type") != "application/json" {
		t.Errorf("called with %q as %q", c.body, c.header.Get("Content-Type"))
	}
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := hook.Verify([]byte(c.body), c.header); err != nil {
		t.Errorf("the library refuses our signature: %v", err)
	}
}
