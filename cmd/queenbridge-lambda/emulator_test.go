package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// buildTags are those of the Makefile: without the RPC of the old runtime,
// without the spool.
const buildTags = "lambda.norpc,nospool"

const (
	emulatorModule  = "github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie"
	emulatorVersion = "v0.0.0-20261030222936-bef5c4ba774d"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// emulatorProgram builds the runtime interface emulator once and keeps it
// between runs.
var emulatorProgram = sync.OnceValues(func() (string, error) {
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(home, ".cache")
	}
	cache = filepath.Join(cache, "queenbridge")
	program := filepath.Join(cache, "aws-lambda-rie-"+emulatorVersion)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(cache, 0o750); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(cache, "rie-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c := exec.Command("go", "install", emulatorModule+"@"+emulatorVersion)
	c.Env = append(os.Environ(), "GOBIN="+dir)
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the runtime interface emulator: %w\n%s", err, out)
	}
	// Another run may have built it meanwhile: it is the same.
	return program, os.Rename(filepath.Join(dir, "aws-lambda-rie"), program)
})

// buildFunction builds the program as it is deployed, in a directory of its
// own beside bridge.yaml.
func buildFunction(t *testing.T, config string) (bootstrap string) {
	t.Helper()
	dir := t.TempDir()
	bootstrap = filepath.Join(dir, "bootstrap")
	c := exec.Command("go", "build", "-tags", buildTags, "-o", bootstrap, ".")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "bridge.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return bootstrap
}

// emulator is one running function. The real Lambda has one invocation at a
// time for each; this emulator crashes on two.
type emulator struct {
	t      *testing.T
	url    string
	client *http.Client
	out    *lockedBuffer
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// startEmulator runs a function with a timeout in seconds until the test ends.
func startEmulator(t *testing.T, bootstrap string, timeout int, env ...string) *emulator {
	t.Helper()
	program, err := emulatorProgram()
	if err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	e := &emulator{t: t, url: "http://" + addr + "/2015-03-31/functions/function/invocations",
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, out: &lockedBuffer{}}
	c := exec.Command(program, "--runtime-interface-emulator-address", addr, "--runtime-api-address", freeAddr(t), bootstrap)
	c.Dir = filepath.Dir(bootstrap)
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "AWS_LAMBDA_FUNCTION_TIMEOUT=" + strconv.Itoa(timeout)}, env...)
	c.Stdout, c.Stderr = e.out, e.out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.WaitDelay = 5 * time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // with the function in it
		_ = c.Wait()
		if t.Failed() {
			t.Logf("the emulator and the function said:\n%s", e.out)
		}
	})
	e.awaitListener(addr)
	return e
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (e *emulator) awaitListener(addr string) {
	e.t.Helper()
	until := time.After(30 * time.Second)
	for tick := time.Tick(20 * time.Millisecond); ; {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
			return
		}
		select {
		case <-tick:
		case <-until:
			e.t.Fatalf("the emulator does not listen: %v", err)
		}
	}
}

// invoke hands an event to the function and returns its answer.
func (e *emulator) invoke(event []byte) []byte {
	e.t.Helper()
	answer, err := e.try(event)
	if err != nil {
		e.t.Fatalf("invoke: %v", err)
	}
	return answer
}

func (e *emulator) try(event []byte) ([]byte, error) {
	res, err := e.client.Post(e.url, "application/json", bytes.NewReader(event))
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", res.StatusCode, answer)
	}
	return answer, err
}
