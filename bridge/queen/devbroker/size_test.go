package devbroker_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// sizeMessages asks for the big run: so many messages of 1 KiB.
const sizeMessages = "DEVBROKER_SIZE_MESSAGES"

// TestSize fills a broker in a process of its own, then measures its memory,
// kills it, and measures how long the next one takes to open the data. A
// normal run is small; the targets are for a million messages.
func TestSize(t *testing.T) {
	n := 20_000
	if v, err := strconv.Atoi(os.Getenv(sizeMessages)); err == nil {
		n = v
	}
	dir := t.TempDir()
	p := serve(t, dir)
	start := time.Now()
	p.fill(t, n)
	took := time.Since(start)
	full := p.memory(t)
	p.kill(t)
	start = time.Now()
	p = serve(t, dir)
	recovery := time.Since(start)
	again := p.memory(t)
	p.kill(t)
	t.Logf("%d messages: %.0f/s in, %d MiB, opened again in %v with %d MiB", n, float64(n)/took.Seconds(), full>>20, recovery, again>>20)
	if recovery > 5*time.Second || full > 150<<20 || again > 150<<20 {
		t.Errorf("over the targets of 5s and 150 MiB")
	}
}

// process is a broker in a process of its own.
type process struct {
	cmd *exec.Cmd
	url string
}

func serve(t *testing.T, dir string) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the broker did not start: %v", err)
	}
	return &process{cmd, "http://" + strings.TrimSpace(line)}
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = p.cmd.Wait()
	http.DefaultClient.CloseIdleConnections()
}

// memory is the resident size in bytes.
func (p *process) memory(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	var kb int64
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			if _, err := fmt.Sscan(rest, &kb); err != nil {
				t.Fatal(err)
			}
		}
	}
	return kb << 10
}

func (p *process) fill(t *testing.T, n int) {
	t.Helper()
	per, err := strconv.Atoi(os.Getenv("DEVBROKER_SIZE_BATCH"))
	if err != nil {
		per = 100
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			body, marks := pushBody(per, min(per, 16))
			for i := w; i < n/per; i += 8 {
				number(body, marks, int64(i))
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/api/v1/push", strings.NewReader(string(body)))
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	wg.Wait()
}
