package ingress_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
	"github.com/queenbridge/queenbridge/ingress"
)

// spoolChild names the spool of a child process that is there to be killed.
const spoolChild = "QUEENBRIDGE_TEST_SPOOL"

// spoolUntilKilled accepts events into a spool and says so, for ever.
func spoolUntilKilled(dir string) {
	src := open("a")
	src.Spool, src.Partition = true, "literal:one"
	c := sources(src)
	c.Queen = newAwayQueen(true)
	c.Settings.Spool.Dir = dir
	s, err := ingress.New(c)
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	for i := 0; ; i++ {
		id := fmt.Sprintf("%06d", i)
		if rec := call(s.Handler(), "/in/a", `{"pad":"`+strings.Repeat("x", 2000)+`"}`, "X-Id", id); rec.Code != http.StatusOK {
			fmt.Println("error: status", rec.Code)
			os.Exit(1)
		}
		fmt.Println("none:" + id)
	}
}

// TestAcceptedEventsSurviveKill9: whatever was answered 2xx is there, in order,
// after the process was killed in the middle of its work.
func TestAcceptedEventsSurviveKill9(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), spoolChild+"="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var accepted []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "error") {
			t.Fatal(lines.Text())
		}
		if accepted = append(accepted, lines.Text()); len(accepted) == 50 {
			_ = child.Process.Kill() // SIGKILL; what it had written still comes
		}
	}
	_ = child.Wait()
	s, err := ingress.OpenSpool(dir, ingress.SpoolOptions{})
	if err != nil {
		t.Fatalf("OpenSpool after the kill = %v", err)
	}
	defer s.Close()
	q := &queentest.Shelf{}
	n, err := s.Drain(t.Context(), q)
	if err != nil || n < len(accepted) || n > len(accepted)+1 {
		t.Errorf("Drain = %d, %v, want the %d that were accepted, and at most the one under way", n, err, len(accepted))
	}
	checkOrder(t, q.Items(), n)
	for i, id := range accepted {
		if got := q.Items()[i].TransactionID; got != id {
			t.Fatalf("event %d is %s, want %s", i, got, id)
		}
	}
}

// TestATornTailIsDroppedAndReported: the log of a process that died in the
// middle of a write, as a disk may show it.
func TestATornTailIsDroppedAndReported(t *testing.T) {
	t.Parallel()
	live := t.TempDir()
	src := open("a")
	c := spooling(t, newAwayQueen(true), src)
	c.Settings.Spool.Dir = live
	w := newSpooling(t, c)
	for i := range 10 {
		if res, _ := w.post(t, "/in/a", `{"pad":"`+strings.Repeat("x", 6000)+`"}`, "X-Id", fmt.Sprint(i)); res.StatusCode != 200 {
			t.Fatalf("status %d", res.StatusCode)
		}
	}
	data, log := read(t, live, "spool.db"), read(t, live, "spool.db-wal")
	for name, tc := range map[string]struct {
		log    []byte
		events int64
		torn   bool
	}{
		"whole":         {log, 10, false},
		"cut":           {log[:len(log)-100], 9, true},
		"last bit":      {flipped(log, len(log)-1), 9, true},
		"half a header": {log[:len(log)-4096-20], 9, true},
	} {
		dir := t.TempDir()
		write(t, dir, "spool.db", data)
		write(t, dir, "spool.db-wal", tc.log)
		if st, err := ingress.ReadSpool(dir); err != nil || len(st.Queues) != 1 || st.Queues[0].Events != tc.events {
			t.Errorf("%s: ReadSpool = %+v, %v; want %d events, and nothing changed", name, st, err, tc.events)
		}
		s, err := ingress.OpenSpool(dir, ingress.SpoolOptions{})
		if err != nil {
			t.Errorf("%s: OpenSpool = %v", name, err)
			continue
		}
		st, err := s.Status()
		if err != nil || len(st.Queues) != 1 || st.Queues[0].Events != tc.events || (st.Torn > 0) != tc.torn {
			t.Errorf("%s: Status = %+v, %v; want %d events, torn: %t", name, st, err, tc.events, tc.torn)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func flipped(b []byte, at int) []byte {
	out := append([]byte(nil), b...)
	out[at] ^= 1
	return out
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, dir, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// What is no spool, or one of a later version, is an error that says so.
func TestASpoolThatCannotBeRead(t *testing.T) {
	t.Parallel()
	broken := t.TempDir()
	write(t, broken, "spool.db", []byte(strings.Repeat("no database ", 1000)))
	if _, err := ingress.OpenSpool(broken, ingress.SpoolOptions{}); err == nil || !strings.Contains(err.Error(), broken) {
		t.Errorf("OpenSpool of no database = %v, want an error with its place", err)
	}
	if _, err := ingress.ReadSpool(broken); err == nil {
		t.Error("ReadSpool of no database = nil")
	}
	if _, err := ingress.ReadSpool(t.TempDir()); err == nil {
		t.Error("ReadSpool of nothing = nil")
	}
	c := sources(bridge.Source{Name: "a", Scheme: "none", Spool: true})
	c.Queen, c.Settings.Spool.Dir = &queentest.Shelf{}, broken
	if _, err := ingress.New(c); err == nil || !strings.Contains(err.Error(), "ingress.spool") {
		t.Errorf("New = %v, want an error that names ingress.spool", err)
	}
}
