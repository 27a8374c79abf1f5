package queen_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// guard is a transport to a broker that takes some tokens and keeps what it
// was shown.
type guard struct {
	valid []string
	shown []string
}

func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	g.shown = append(g.shown, token)
	if !slices.Contains(g.valid, token) {
		return response(r, 401, `{"error":"Invalid token signature"}`), nil
	}
	return response(r, 201, `[{"status":"queued"}]`), nil
}

func writeToken(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func denied(t *testing.T, err error) {
	t.Helper()
	var status *queen.StatusError
	if !errors.As(err, &status) || status.Status != 401 || !queen.Denied(err) || queen.Temporary(err) {
		t.Errorf("error = %v; want the 401", err)
	}
}

func TestAStaticTokenIsNotTriedTwice(t *testing.T) {
	t.Parallel()
	g := &guard{}
	c := client(t, queen.Config{URLs: []string{"http://a", "http://b"}, Transport: g, Token: "old"})
	_, err := c.Push(t.Context(), items("a"))
	denied(t, err)
	if d := cmp.Diff([]string{"old"}, g.shown); d != "" {
		t.Error(d)
	}
}

func TestATokenFileIsReadAgainAfterA401(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	writeToken(t, path, "\n old\n")
	g := &guard{valid: []string{"old"}}
	c := client(t, queen.Config{URLs: []string{"http://a"}, Transport: g, TokenFile: path})
	push := func() error { _, err := c.Push(t.Context(), items("a")); return err }
	if err := push(); err != nil {
		t.Fatal(err)
	}
	writeToken(t, path, "new") // same size, maybe the same moment: only the 401 tells
	g.valid = []string{"new"}
	if err := push(); err != nil {
		t.Errorf("after the rotation: %v", err)
	}
	if err := push(); err != nil {
		t.Error(err)
	}
	g.valid = nil
	denied(t, push())
	if d := cmp.Diff([]string{"old", "old", "new", "new", "new"}, g.shown); d != "" {
		t.Errorf("shown: %s", d)
	}
}

func TestATransactionIsSentAgainWithTheNewToken(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	writeToken(t, path, "old")
	g := &guard{}
	c := client(t, queen.Config{URLs: []string{"http://a"}, Transport: g, TokenFile: path})
	writeToken(t, path, "new")
	_, _ = c.Commit(t.Context(), prepare(t, recordedBundle()))
	if d := cmp.Diff([]string{"old", "new"}, g.shown); d != "" {
		t.Errorf("shown: %s", d)
	}
}

// A file that is replaced, as an orchestrator does, is noticed without a 401.
func TestAReplacedTokenFileIsNoticedWithinASecond(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "token")
	for _, name := range []string{"one", "two"} {
		writeToken(t, filepath.Join(dir, name), name)
	}
	link := func(to string) {
		next := filepath.Join(dir, "next")
		if err := errors.Join(os.Symlink(to, next), os.Rename(next, path)); err != nil {
			t.Fatal(err)
		}
	}
	link("one")
	synctest.Test(t, func(t *testing.T) {
		g := &guard{valid: []string{"one", "two"}}
		c := client(t, queen.Config{URLs: []string{"http://a"}, Transport: g, TokenFile: path})
		push := func() {
			if _, err := c.Push(t.Context(), items("a")); err != nil {
				t.Error(err)
			}
		}
		push()
		link("two")
		time.Sleep(999 * time.Millisecond)
		push()
		time.Sleep(time.Millisecond)
		push()
		push()
		if d := cmp.Diff([]string{"one", "one", "two", "two"}, g.shown); d != "" {
			t.Errorf("shown: %s", d)
		}
	})
}

func TestAnUnreadableTokenFileLeavesTheLastToken(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(path string) error{
		"gone":    os.Remove,
		"empty":   func(path string) error { return os.WriteFile(path, []byte(" \n"), 0o600) },
		"garbage": func(path string) error { return os.WriteFile(path, []byte("se cret\x00"), 0o600) },
		"large":   func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("x"), 1<<20), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "token")
			writeToken(t, path, "last")
			var log bytes.Buffer
			g := &guard{}
			c := client(t, queen.Config{URLs: []string{"http://a"}, Transport: g, TokenFile: path, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				_, err := c.Push(t.Context(), items("a"))
				denied(t, err)
			}
			if d := cmp.Diff([]string{"last", "last", "last"}, g.shown); d != "" {
				t.Error(d)
			}
			if n := strings.Count(log.String(), "token not read again"); n != 1 || strings.Contains(log.String(), "cret") {
				t.Errorf("log says it %d times, want once and no token:\n%s", n, log.String())
			}
		})
	}
}

func TestATokenSourceIsAskedEachTimeAndAfterA401(t *testing.T) {
	t.Parallel()
	n := 0
	var refused []string
	source := func(_ context.Context, no string) (string, error) {
		n++
		refused = append(refused, no)
		return fmt.Sprint("t", n), nil
	}
	g := &guard{valid: []string{"t1", "t3"}}
	c := client(t, queen.Config{URLs: []string{"http://a"}, Transport: g, TokenSource: source})
	for range 2 {
		if _, err := c.Push(t.Context(), items("a")); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff([]string{"t1", "t2", "t3"}, g.shown); d != "" {
		t.Errorf("shown: %s", d)
	}
	if d := cmp.Diff([]string{"", "", "t2"}, refused); d != "" {
		t.Errorf("refused: %s", d)
	}
}

func TestATokenSourceThatFailsSendsNothing(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]queen.TokenSource{
		"error":      func(context.Context, string) (string, error) { return "", errors.New("vault is sealed") },
		"two lines":  func(context.Context, string) (string, error) { return "hush\r\nX-Evil: 1", nil },
		"with space": func(context.Context, string) (string, error) { return "hush hush", nil },
	} {
		g := &guard{}
		c := client(t, queen.Config{URLs: []string{"http://a", "http://b"}, Transport: g, TokenSource: source})
		_, err := c.Push(t.Context(), items("a"))
		if err == nil || queen.Uncertain(err) || len(g.shown) > 0 || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: Push() error = %v after %d requests; want a certain one, nothing sent", name, err, len(g.shown))
		}
	}
}

func TestNewRefusesBadTokens(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	writeToken(t, empty, "\n")
	source := func(context.Context, string) (string, error) { return "", nil }
	for name, cfg := range map[string]queen.Config{
		"file is not there": {TokenFile: filepath.Join(t.TempDir(), "none")},
		"file is empty":     {TokenFile: empty},
		"token of two":      {Token: "hush hush"},
		"token with a line": {Token: "hush\n"},
		"two of them":       {Token: "hush", TokenFile: empty},
		"two others":        {TokenFile: empty, TokenSource: source},
	} {
		cfg.URLs = []string{"http://a"}
		if c, err := queen.New(cfg); err == nil || c != nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: New() = %v, %v; want an error that shows no token", name, c, err)
		}
	}
}
