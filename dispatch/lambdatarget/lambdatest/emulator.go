package lambdatest

import (
	"bytes"
	"errors"
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
)

// Module and version of the emulator: what runs functions in AWS's images.
const (
	emulatorModule  = "github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie"
	emulatorVersion = "v0.0.0-20261030222936-bef5c4ba774d"
)

// emulatorProgram builds the emulator once and keeps it between runs.
func emulatorProgram() (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	program := filepath.Join(cache, "aws-lambda-rie-"+emulatorVersion)
	if _, err := os.Stat(program); err == nil {
		return program, nil
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
}

func cacheDir() (string, error) {
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(home, ".cache")
	}
	cache = filepath.Join(cache, "queenbridge")
	return cache, os.MkdirAll(cache, 0o750) //nolint:gosec // the user names the cache
}

// Build builds a Go function as it is deployed, in a directory of its own, and
// returns the program's path. pkg and tags are what go build takes; AWS's own
// tag is lambda.norpc.
func Build(t testing.TB, pkg, tags string) (bootstrap string) {
	t.Helper()
	bootstrap = filepath.Join(t.TempDir(), "bootstrap")
	c := exec.Command("go", "build", "-tags", tags, "-o", bootstrap, pkg) //nolint:gosec // a test names the package
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
	return bootstrap
}

// Options say which function to run.
type Options struct {
	// Bootstrap is the function's program; it runs in its own directory.
	Bootstrap string
	// Timeout is the function's, in whole seconds. Defaults to 10 s.
	Timeout time.Duration
	// Env are further variables of its environment, as in os.Environ. There is
	// none of the test's own but PATH.
	Env []string
}

// Emulator is one running function. Safe for concurrent use: as in Lambda, one
// instance has one invocation at a time; the emulator itself crashes on two.
type Emulator struct {
	url    string
	client *http.Client
	log    *syncBuffer
	one    sync.Mutex
}

// Start runs a function until the test ends.
func Start(t testing.TB, o Options) *Emulator {
	t.Helper()
	program, err := emulatorProgram()
	if err != nil {
		t.Fatal(err)
	}
	addr := FreeAddr(t)
	e := &Emulator{
		url:    "http://" + addr + "/2015-03-31/functions/function/invocations",
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, log: &syncBuffer{},
	}
	seconds := max(int(o.Timeout/time.Second), 1)
	if o.Timeout == 0 {
		seconds = 10
	}
	// Without both flags it listens on 0.0.0.0:8080.
	c := exec.Command(program, "--runtime-interface-emulator-address", addr, "--runtime-api-address", FreeAddr(t), o.Bootstrap) //nolint:gosec // the test's own program
	c.Dir = filepath.Dir(o.Bootstrap)
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "AWS_LAMBDA_FUNCTION_TIMEOUT=" + strconv.Itoa(seconds)}, o.Env...)
	c.Stdout, c.Stderr = e.log, e.log
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.WaitDelay = 5 * time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // with the function in it
		_ = c.Wait()
		if t.Failed() {
			t.Logf("the emulator and the function said:\n%s", e.log)
		}
	})
	awaitListener(t, addr)
	return e
}

// FreeAddr is a loopback address nobody listens on.
func FreeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func awaitListener(t testing.TB, addr string) {
	t.Helper()
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
			t.Fatalf("the emulator does not listen: %v", err)
		}
	}
}

// errExited is a function whose process ended during an invocation.
var errExited = errors.New("the function's process ended")

// Invoke hands an event to the function and returns what the emulator answers:
// the function's answer, or a document with errorMessage.
func (e *Emulator) Invoke(event []byte) ([]byte, error) { return e.invoke(event, "") }

// invoke also hands over a client context, encoded as in Lambda's API.
func (e *Emulator) invoke(event []byte, clientContext string) ([]byte, error) {
	e.one.Lock()
	defer e.one.Unlock()
	req, err := http.NewRequest(http.MethodPost, e.url, bytes.NewReader(event)) //nolint:noctx // the function's own timeout ends it
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if clientContext != "" {
		req.Header.Set("X-Amz-Client-Context", clientContext)
	}
	res, err := e.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	switch {
	case err == nil && res.StatusCode == http.StatusBadGateway:
		err = errExited
	case err == nil && res.StatusCode != http.StatusOK:
		err = fmt.Errorf("status %d: %s", res.StatusCode, answer)
	}
	return answer, err
}

// Log is what the emulator and the function have printed so far.
func (e *Emulator) Log() string { return e.log.String() }

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write appends p.
func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String is all that was written.
func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
