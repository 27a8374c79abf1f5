package ingress_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/ingress"
)

const (
	idleConnections = 10_000 // between two requests
	slowConnections = 1_000  // in the middle of a body
)

// holdChild names the address that a child process is to hold connections to.
// The clients are a process of their own: 11,000 connections are 22,000 files,
// more than a process may often have open (the runtime raises its own limit to
// what is allowed), and what they cost is not the server's.
const holdChild = "QUEENBRIDGE_TEST_HOLD"

// holdConnections opens the idle connections, and the slow ones when a line
// comes in, says when they are there, and closes all at the end of its input.
func holdConnections(addr string) {
	fail := func(err error) {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	w, in := githubLoad(), bufio.NewReader(os.Stdin)
	var conns []net.Conn
	open := func(wire []byte) net.Conn {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_, err = c.Write(wire)
		}
		if err != nil {
			fail(err)
		}
		conns = append(conns, c)
		return c
	}
	r := bufio.NewReader(nil)
	for n := range int64(idleConnections) {
		r.Reset(open(w.next(n)))
		if status, err := readAnswer(r); err != nil || status != 200 {
			fail(fmt.Errorf("answer %d, %w", status, err))
		}
	}
	fmt.Println("idle")
	_, _ = in.ReadString('\n')
	for n := range int64(slowConnections) {
		wire := w.next(idleConnections + n)
		open(wire[:len(wire)-100])
	}
	fmt.Println("slow")
	_, _ = io.Copy(io.Discard, in)
	for _, c := range conns {
		_ = c.(*net.TCPConn).SetLinger(0) // no port is kept waiting: the benchmark may run again
		_ = c.Close()
	}
	os.Exit(0)
}

// BenchmarkIdleConnections holds 10,000 connections between two requests and
// 1,000 in the middle of a body, and reports what one of each costs in memory of
// the server's process, heap and stacks, while requests go on. The bare baseline
// is the Echo handler of BenchmarkBareEcho.
func BenchmarkIdleConnections(b *testing.B) {
	b.Run("bare-echo", func(b *testing.B) {
		reading := new(atomic.Int64)
		benchConnectionMemory(b, bareServer(b, reading), func() int64 { return reading.Load() })
	})
	b.Run("ingress", func(b *testing.B) {
		reg := prometheus.NewRegistry()
		c := ingress.Config{Sources: []bridge.Source{benchSource()}, Queen: benchQueen(b), Metrics: reg}
		c.Settings.MaxInFlight = 2 * slowConnections
		benchConnectionMemory(b, benchServer(b, c), func() int64 { return int64(metric(b, reg, "queenbridge_ingress_in_flight")) })
	})
}

func benchConnectionMemory(b *testing.B, addr string, reading func() int64) {
	before := inUse()
	clients := startHolding(b, addr)
	clients.expect(b, "idle")
	idle := inUse()
	clients.more(b)
	clients.expect(b, "slow")
	waitFor(b, func() bool { return reading() >= slowConnections })
	slow := inUse()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	w, r, n := githubLoad(), bufio.NewReader(c), int64(idleConnections+slowConnections)
	for b.Loop() {
		n++
		if _, err := c.Write(w.next(n)); err != nil {
			b.Fatal(err)
		}
		if status, err := readAnswer(r); err != nil || status != 200 {
			b.Fatalf("answer %d, %v; want 200", status, err)
		}
	}
	b.ReportMetric(float64(idle-before)/idleConnections, "B/idle-conn")
	b.ReportMetric(float64(slow-idle)/slowConnections, "B/slow-conn")
}

// holding is the child process.
type holding struct {
	in  io.WriteCloser
	out *bufio.Scanner
}

func startHolding(b *testing.B, addr string) *holding {
	b.Helper()
	child := exec.CommandContext(context.WithoutCancel(b.Context()), os.Args[0]) // ends with its input
	child.Env = append(os.Environ(), holdChild+"="+addr)
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := child.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		if err := child.Wait(); err != nil {
			b.Error(err)
		}
	})
	return &holding{in: in, out: bufio.NewScanner(out)}
}

func (h *holding) expect(b *testing.B, what string) {
	b.Helper()
	if !h.out.Scan() || h.out.Text() != what {
		b.Fatalf("the process of the clients says %q, want %q (more than %d open files are needed)", h.out.Text(), what, idleConnections+slowConnections)
	}
}

func (h *holding) more(b *testing.B) {
	b.Helper()
	if _, err := io.WriteString(h.in, "\n"); err != nil {
		b.Fatal(err)
	}
}

// waitFor waits until something is so, for bodyTime at most: then the server
// gives slow bodies up.
func waitFor(b *testing.B, so func() bool) {
	b.Helper()
	deadline, tick := time.After(9*time.Second), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-deadline:
			b.Fatal("it takes too long")
		case <-tick.C:
		}
	}
}

// inUse is the memory of heap and stacks in use.
func inUse() int64 {
	runtime.GC()
	runtime.GC() // what pools kept through the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse) //nolint:gosec // far below 2^63
}
