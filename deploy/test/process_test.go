package deploy_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is a running bridge.
type process struct {
	cmd   *exec.Cmd
	lines chan string
	ended chan error
	urls  map[string]string // log message → the URL it names
}

// start starts a command that becomes `queenbridge serve` and waits until it
// is connected to Queen. The command has a process group of its own.
func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	return startUntil(t, cmd, "queen connected")
}

// startUntil starts a command and waits for a message of its log.
func startUntil(t *testing.T, cmd *exec.Cmd, message string) *process {
	t.Helper()
	p := &process{cmd: cmd, lines: make(chan string, 10_000), ended: make(chan error, 1), urls: make(map[string]string)}
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for s := bufio.NewScanner(r); s.Scan(); {
			p.lines <- s.Text()
		}
		close(p.lines)
	}()
	go func() {
		err := cmd.Wait()
		_ = w.Close()
		p.ended <- err
	}()
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	p.await(t, message)
	return p
}

// await reads the log up to a message.
func (p *process) await(t *testing.T, message string) {
	t.Helper()
	deadline := time.After(patient)
	var log []string
	for {
		select {
		case line, open := <-p.lines:
			if !open {
				t.Fatalf("%s ended without saying %q:\n%s", p.cmd, message, strings.Join(log, "\n"))
			}
			log = append(log, line)
			var record struct{ Msg, URL string }
			if json.Unmarshal([]byte(line), &record) == nil {
				p.urls[record.Msg] = record.URL
			}
			if record.Msg == message {
				return
			}
		case <-deadline:
			t.Fatalf("%s does not say %q:\n%s", p.cmd, message, strings.Join(log, "\n"))
		}
	}
}

func (p *process) ingress() string { return p.urls["ingress listening"] }
func (p *process) admin() string   { return p.urls["admin listening"] }

// stop asks the bridge to stop, and waits until it has drained.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	p.await(t, "stopped")
	if err := p.end(t); err != nil {
		t.Errorf("the stopped bridge ends with %v", err)
	}
}

// kill ends the bridge without notice.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	_ = p.end(t)
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(-p.cmd.Process.Pid, s); err != nil {
		t.Fatal(err)
	}
}

// end waits for the end of all that holds the output open.
func (p *process) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-p.ended:
		return err
	case <-time.After(patient):
		t.Fatal("the process does not end")
		return nil
	}
}

// get is the status and the body of a GET.
func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(all)
}

// smoke runs the smoke test that users run against a running bridge.
func smoke(t *testing.T, p *process) {
	t.Helper()
	cmd := exec.Command("sh", "../smoke.sh", p.ingress(), p.admin())
	cmd.Env = append(cmd.Environ(), "GITHUB_WEBHOOK_SECRET="+secret)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("smoke.sh: %v\n%s", err, out)
	}
}
