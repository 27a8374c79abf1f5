package main

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// configured writes a configuration and returns an environment that names it.
func configured(t *testing.T, yaml string) lookup {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bridge.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(name string) (string, bool) {
		switch name {
		case "AWS_LAMBDA_RUNTIME_API":
			return "127.0.0.1:1", true
		case "QUEENBRIDGE_CONFIG":
			return file, true
		}
		return "", false
	}
}

const oneSource = "sources: [{name: github, scheme: github, secrets: [s3cret-of-github]}]\n"

func TestWhatAFunctionCannotKeepIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ yaml, want string }{
		"embedded broker": {oneSource + "queen: {embedded: memory}\n", "queen.embedded: a function has neither"},
		"spool": {"sources: [{name: github, scheme: github, secrets: [s3cret-of-github], spool: true}]\ningress: {spool: {dir: /tmp/spool}}\n",
			"there is no spool\nsources[0].spool:"},
		"no source": {"queen: {urls: [\"http://127.0.0.1:1\"]}\n", "sources: there is none"},
		"a mistake": {"sources: [{name: github, scheme: gitbub}]\n", "bridge.yaml:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var logs bytes.Buffer
			f, err := start(t.Context(), &logs, configured(t, tc.yaml))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("start = %v, %v; want an error with %q", f, err, tc.want)
			}
		})
	}
}

func TestAnywhereElseThanInLambdaItSaysSo(t *testing.T) {
	t.Parallel()
	_, err := start(t.Context(), &bytes.Buffer{}, func(string) (string, bool) { return "", false })
	if err == nil || !strings.Contains(err.Error(), "queenbridge serve --only ingress") {
		t.Errorf("start = %v, want what to run instead", err)
	}
}

// TestQueuesAreSetUpAtTheStart as "queenbridge serve" does: how long ids are
// known is an option of the queue.
func TestQueuesAreSetUpAtTheStart(t *testing.T) {
	t.Parallel()
	broker, err := devbroker.Open(devbroker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	server := httptest.NewServer(broker)
	defer server.Close()
	var logs bytes.Buffer
	env := configured(t, oneSource+"queen: {urls: [\""+server.URL+"\"]}\nqueues: [{name: github, lease: 77s}]\n")
	if _, err := start(t.Context(), &logs, env); err != nil {
		t.Fatal(err)
	}
	res, err := server.Client().Get(server.URL + "/api/v1/status/queues/github")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(body.String(), `"leaseTime":77`) {
		t.Errorf("queue %s, want a lease of 77 s", body.String())
	}
	if !strings.Contains(logs.String(), `"msg":"ready"`) || strings.Contains(logs.String(), "s3cret-of-github") {
		t.Errorf("log:\n%s", logs.String())
	}
}

// TestQueenAwayAtTheStartIsNoReasonNotToStart: the next event may find it.
func TestQueenAwayAtTheStartIsNoReasonNotToStart(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(nil)
	server.Close()
	var logs bytes.Buffer
	f, err := start(context.WithoutCancel(t.Context()), &logs, configured(t, oneSource+"queen: {urls: [\""+server.URL+"\"]}\n"))
	if err != nil || f == nil || !strings.Contains(logs.String(), "queue not configured") {
		t.Errorf("start = %v, %v; log:\n%s", f, err, logs.String())
	}
}

// TestTheProgramHasNoStore: what a function cannot use must not make its start
// slower. Neither SQLite nor the embedded broker is linked, nor what traces
// attempts.
func TestTheProgramHasNoStore(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", "-tags", buildTags, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "github.com/queenbridge/queenbridge/ingress\n") {
		t.Fatalf("go list says nothing of the ingress:\n%s", out)
	}
	for line := range strings.Lines(string(out)) {
		for _, unwanted := range []string{"sqlite", "devbroker", "queenbridge/dispatch", "spf13/cobra", "net/rpc", "opentelemetry"} {
			if strings.Contains(line, unwanted) {
				t.Errorf("%s is linked", strings.TrimSpace(line))
			}
		}
	}
}
