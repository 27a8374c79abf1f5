package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSpoolStatusAndDrain: a webhook is accepted while Queen is away; status
// shows it beside the running bridge, drain pushes it when that is gone.
func TestSpoolStatusAndDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := filepath.Join(w.dir, "bridge.yaml")
	config := func(queen string) {
		text := "queen: {urls: [\"" + queen + "\"]}\n" +
			"ingress: {addr: \"127.0.0.1:0\", enqueue_timeout: 1s, spool: {dir: \"" + filepath.Join(w.dir, "spool") + "\", max_bytes: 1MiB}}\n" +
			"admin: {addr: \"127.0.0.1:0\"}\n" +
			"sources:\n  - {name: " + w.name("main") + ", scheme: github, secrets: [secret-one], spool: true}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config("http://127.0.0.1:1")
	spool := func(want int, args ...string) (string, string) {
		t.Helper()
		code, out, errs := runProgram(t, append([]string{"spool"}, append(args, "--config", path)...)...)
		if code != want {
			t.Fatalf("spool %v: exit code %d, want %d\n%s%s", args, code, want, out, errs)
		}
		return out, errs
	}
	if out, _ := spool(0, "status"); !strings.Contains(out, ": 0 events wait, 0 refused, 0 bytes of 1MiB") {
		t.Errorf("status before anything: %s", out)
	}
	p := launch(t, nil, "serve", "--config", path)
	p.ingress = p.url("ingress listening")
	if status := p.githubAs("secret-one", w.path(), "1"); status != http.StatusOK {
		t.Fatalf("while Queen is away: %d", status)
	}
	if out, _ := spool(0, "status", "--json"); !strings.Contains(out, `"events": 1`) || !strings.Contains(out, `"max_bytes": 1048576`) {
		t.Errorf("status beside the bridge: %s", out)
	}
	if _, errs := spool(1, "drain"); !strings.Contains(errs, "hint: the bridge that runs drains it by itself") {
		t.Errorf("drain beside the bridge: %s", errs)
	}
	p.stop()
	if out, errs := spool(1, "drain", "--timeout", "300ms"); !strings.Contains(out, "Queen took 0 events") || !strings.Contains(errs, w.name("main")) {
		t.Errorf("drain while Queen is away: %s%s", out, errs)
	}
	broker := launch(t, nil, "queen", "--memory", "--addr", "127.0.0.1:0", "--log-format", "json")
	config(broker.url("embedded broker listening"))
	if out, _ := spool(0, "drain"); !strings.Contains(out, "Queen took 1 event") {
		t.Errorf("drain: %s", out)
	}
	if out, _ := spool(0, "status"); !strings.Contains(out, ": 0 events wait") {
		t.Errorf("status after drain: %s", out)
	}
}
