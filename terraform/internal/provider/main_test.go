package provider_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/terraform/internal/provider"
)

// These tests run the real terraform against a real `queenbridge serve`. The
// provider is the test binary itself, the race detector included: terraform
// starts it as its plugin.

// asProvider makes the test binary serve the provider.
const asProvider = "QUEENBRIDGE_TEST_AS_PROVIDER"

// patient bounds every wait for something that should happen soon. On a real
// Queen all tests' bridges are replicas of one: what one of them held when it was
// killed comes after a lease of 60 s.
const patient = 100 * time.Second

const (
	adminToken    = "a-token-of-the-admin-api"
	viewerToken   = "a-token-that-may-read"
	encryptionKey = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
)

// built by TestMain.
var built struct{ queenbridge, terraform, cliConfig string }

func TestMain(m *testing.M) {
	if os.Getenv(asProvider) == "1" {
		err := providerserver.Serve(context.Background(), provider.New("test"), providerserver.ServeOpts{
			Address: provider.Address,
		})
		if err != nil {
			panic(err)
		}
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "queenbridge-terraform")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := prepare(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// prepare builds the bridge, finds terraform, and makes the test binary the
// provider that terraform takes.
func prepare(dir string) error {
	built.queenbridge = filepath.Join(dir, "queenbridge")
	build := exec.Command("go", "build", "-o", built.queenbridge, "./cmd/queenbridge")
	build.Dir, build.Stderr = "../../..", os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the bridge: %w", err)
	}
	find := exec.Command("../../tools/terraform.sh")
	find.Stderr = os.Stderr
	out, err := find.Output()
	if err != nil {
		return fmt.Errorf("find terraform: %w", err)
	}
	built.terraform = strings.TrimSpace(string(out))
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Symlink(exe, filepath.Join(dir, "terraform-provider-queenbridge")); err != nil {
		return err
	}
	built.cliConfig = filepath.Join(dir, "terraform.rc")
	rc := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"queenbridge/queenbridge\" = %q\n  }\n  direct {}\n}\n", dir)
	return os.WriteFile(built.cliConfig, []byte(rc), 0o600)
}

// realQueen is the URL of a real Queen: the same tests run on that instead of
// the embedded broker (make test-real).
func realQueen() string { return os.Getenv("QUEEN_REAL_URL") }

// process is one running bridge.
type process struct {
	t                     *testing.T
	cmd                   *exec.Cmd
	ingress, admin, queen string // URLs

	mu  sync.Mutex
	log bytes.Buffer
}

// start runs `queenbridge serve`; more is YAML beside its listeners and Queen.
func start(t *testing.T, more string, env ...string) *process {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bridge.yaml")
	queen := `queen: {embedded: memory, embedded_addr: "127.0.0.1:0"}`
	if realQueen() != "" {
		queen = fmt.Sprintf("queen: {urls: [%q]}", realQueen())
	}
	whole := queen + "\ningress: {addr: \"127.0.0.1:0\"}\nadmin: {addr: \"127.0.0.1:0\", " +
		"tokens: [{name: viewer, role: viewer, token: " + viewerToken + "}]}\n" + more
	if err := os.WriteFile(path, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(built.queenbridge, "serve", "--config", path), queen: realQueen()}
	p.cmd.Env = append(os.Environ(), "QUEENBRIDGE_ADMIN_TOKEN="+adminToken, "QUEENBRIDGE_ENCRYPTION_KEY="+encryptionKey, "FROM_ENV=from-env")
	p.cmd.Env = append(p.cmd.Env, env...)
	out, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	addrs := make(chan map[string]string, 1)
	go func() { p.read(out, addrs); _ = p.cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGKILL)
		<-ended
		if t.Failed() {
			t.Logf("log of the bridge:\n%s", p.text())
		}
	})
	select {
	case known := <-addrs:
		p.ingress, p.admin = known["ingress listening"], known["admin listening"]
		if p.queen == "" {
			p.queen = known["embedded broker listening"]
		}
	case <-ended:
		t.Fatalf("the bridge ended:\n%s", p.text())
	case <-time.After(patient):
		t.Fatalf("the bridge is not up:\n%s", p.text())
	}
	return p
}

// read keeps the log, and hands out the addresses once the bridge is connected.
func (p *process) read(out io.Reader, addrs chan<- map[string]string) {
	known := map[string]string{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		p.log.Write(append(lines.Bytes(), '\n'))
		p.mu.Unlock()
		var record struct{ Msg, URL string }
		if json.Unmarshal(lines.Bytes(), &record) != nil {
			continue
		}
		if _, up := known["queen connected"]; !up {
			known[record.Msg] = record.URL
			if record.Msg == "queen connected" {
				addrs <- known
			}
		}
	}
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func (p *process) api() *adminapi.Client {
	p.t.Helper()
	c, err := adminapi.NewClient(adminapi.Config{Endpoint: p.admin, Token: adminToken})
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// patch changes a resource as somebody else would.
func (p *process) patch(kind bridge.Kind, name, doc string) {
	p.t.Helper()
	if _, err := p.api().Patch(p.t.Context(), kind, name, json.RawMessage(doc), adminapi.WriteOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

// document is a resource as the bridge has it.
func (p *process) document(kind bridge.Kind, name string) string {
	p.t.Helper()
	r, err := p.api().Read(p.t.Context(), kind, name)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(r.Document)
}

func (p *process) gone(kind bridge.Kind, name string) {
	p.t.Helper()
	if r, err := p.api().Read(p.t.Context(), kind, name); !adminapi.IsCode(err, adminapi.CodeNotFound) {
		p.t.Errorf("%s/%s = %s, %v, want it gone", kind, name, r.Document, err)
	}
}

// workspace is a directory with a configuration and a state.
type workspace struct {
	t   *testing.T
	dir string
	env []string
}

const header = `
terraform {
  required_providers {
    queenbridge = {
      source = "queenbridge/queenbridge"
    }
  }
}
`

// newWorkspace makes one for a bridge whose admin API is at an URL.
func newWorkspace(t *testing.T, endpoint string) *workspace {
	t.Helper()
	w := &workspace{t: t, dir: t.TempDir()}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "TF_") && !strings.HasPrefix(e, "QUEENBRIDGE_") {
			w.env = append(w.env, e)
		}
	}
	w.env = append(w.env, asProvider+"=1", "TF_CLI_CONFIG_FILE="+built.cliConfig, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1",
		"QUEENBRIDGE_ENDPOINT="+endpoint, "QUEENBRIDGE_TOKEN="+adminToken)
	return w
}

// write makes the configuration; NAME stands for the same in each.
func (w *workspace) write(hcl string) *workspace {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "main.tf"), []byte(header+hcl), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return w
}

// terraform runs a command and returns what it printed and its exit code.
func (w *workspace) terraform(args ...string) (out string, code int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Minute)
	defer cancel()
	words := 1 // of the command; its options come behind
	if args[0] == "state" {
		words = 2
	}
	cmd := exec.CommandContext(ctx, built.terraform, slices.Insert(slices.Clone(args), words, "-no-color")...)
	cmd.Dir, cmd.Env = w.dir, w.env
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 20 * time.Second
	data, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return string(data), cmd.ProcessState.ExitCode()
}

// do runs a command that succeeds.
func (w *workspace) do(args ...string) string {
	w.t.Helper()
	out, code := w.terraform(args...)
	if code != 0 {
		w.t.Fatalf("terraform %s: exit code %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

func (w *workspace) apply() string { w.t.Helper(); return w.do("apply", "-auto-approve") }

func (w *workspace) destroy() string { w.t.Helper(); return w.do("destroy", "-auto-approve") }

// clean demands that a plan finds nothing to do.
func (w *workspace) clean() {
	w.t.Helper()
	if out, code := w.terraform("plan", "-detailed-exitcode"); code != 0 {
		w.t.Fatalf("terraform plan = %d, want nothing to do:\n%s", code, out)
	}
}

// differs demands that a plan finds something to do, and that it says these
// things.
func (w *workspace) differs(want ...string) {
	w.t.Helper()
	out, code := w.terraform("plan", "-detailed-exitcode")
	if code != 2 {
		w.t.Fatalf("terraform plan = %d, want something to do:\n%s", code, out)
	}
	w.says(out, want...)
}

// fails demands that a command fails, and that it says these things.
func (w *workspace) fails(want []string, args ...string) {
	w.t.Helper()
	out, code := w.terraform(args...)
	if code != 1 {
		w.t.Fatalf("terraform %s: exit code %d, want 1\n%s", strings.Join(args, " "), code, out)
	}
	w.says(out, want...)
}

// says compares without the line breaks of terraform's.
func (w *workspace) says(out string, want ...string) {
	w.t.Helper()
	flat := strings.Join(strings.Fields(out), " ")
	for _, text := range want {
		if !strings.Contains(flat, strings.Join(strings.Fields(text), " ")) {
			w.t.Errorf("terraform did not say %q:\n%s", text, out)
		}
	}
}

// output is the value of an output.
func (w *workspace) output(name string, into any) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(w.do("output", "-json", name)), into); err != nil {
		w.t.Fatal(err)
	}
}

// state is the text of the state file.
func (w *workspace) state() string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, "terraform.tfstate"))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

// function is a server that a target calls.
func function(t *testing.T) (url string, calls <-chan string) {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
}
