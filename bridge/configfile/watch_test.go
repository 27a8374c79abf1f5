package configfile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/configfile"
)

// watched is a watcher at work on some files.
type watched struct {
	t       *testing.T
	w       *configfile.Watcher
	changes chan struct{}
}

func watch(t *testing.T, files ...string) watched {
	t.Helper()
	w, err := configfile.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	if added, err := w.Watch(files); err != nil || !added {
		t.Fatalf("Watch = %v, %v", added, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	out := watched{t: t, w: w, changes: make(chan struct{}, 100)}
	go func() { done <- w.Run(ctx, func() { out.changes <- struct{}{} }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return out
}

// one waits for a change.
func (w watched) one(what string) {
	w.t.Helper()
	select {
	case <-w.changes:
	case <-time.After(20 * time.Second):
		w.t.Fatalf("no change was seen: %s", what)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWatcherSeesWritesReplacementsAndLoss(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "bridge.yaml")
	put(t, file, "one")
	w := watch(t, file)
	put(t, file, "two")
	w.one("written in place")
	put(t, file+".new", "three")
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	w.one("replaced")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	w.one("removed")
	put(t, file, "four")
	w.one("back again")
}

// TestWatcherSeesAConfigMapSwap: Kubernetes swaps the link ..data beside the
// file, and removes the old directory.
func TestWatcherSeesAConfigMapSwap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	version := func(name, text string) {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, name, "bridge.yaml"), text)
		if err := os.Symlink(name, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	version("..v1", "one")
	file := filepath.Join(dir, "bridge.yaml")
	if err := os.Symlink(filepath.Join("..data", "bridge.yaml"), file); err != nil {
		t.Fatal(err)
	}
	w := watch(t, file)
	version("..v2", "two")
	w.one("swapped")
	if err := os.RemoveAll(filepath.Join(dir, "..v1")); err != nil {
		t.Fatal(err)
	}
	version("..v3", "three")
	w.one("swapped again")
}

// TestWatcherIgnoresWhatChangesNothing: a touched file, another file beside
// it, and the same text again are no change.
func TestWatcherIgnoresWhatChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, secret := filepath.Join(dir, "bridge.yaml"), filepath.Join(dir, "secret")
	put(t, file, "one")
	put(t, secret, "s")
	w := watch(t, file, secret)
	put(t, filepath.Join(dir, "other"), "x")
	put(t, file, "one")
	if err := os.Chtimes(file, time.Time{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	put(t, secret, "t") // the next real change is seen, and is the only one
	w.one("the secret")
	if n := len(w.changes); n != 0 {
		t.Errorf("%d more changes", n)
	}
}

// TestWatcherTakesNewFiles: a file that is added is compared from then on;
// one that was there keeps what it was compared with.
func TestWatcherTakesNewFiles(t *testing.T) {
	t.Parallel()
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	put(t, a, "1")
	put(t, b, "1")
	w := watch(t, a)
	if added, err := w.w.Watch([]string{a}); added || err != nil {
		t.Errorf("Watch(the same) = %v, %v", added, err)
	}
	if added, err := w.w.Watch([]string{a, b}); !added || err != nil {
		t.Errorf("Watch(one more) = %v, %v", added, err)
	}
	put(t, b, "2")
	w.one("the new file")
	_, err := w.w.Watch([]string{a, b, filepath.Join(t.TempDir(), "nowhere", "c")})
	if err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("Watch in a directory that is not there: %v", err)
	}
	put(t, a, "2")
	w.one("after the error")
}

// TestFilesAndWritten: what a configuration was made of.
func TestFilesAndWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "secret"), "s3cret\n")
	path := filepath.Join(dir, "bridge.yaml")
	put(t, path, "sources:\n  - {name: a, scheme: github, secrets: [\"${file:secret}\", literal]}\n")
	r, err := configfile.Load(configfile.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{path, filepath.Join(dir, "secret")}, r.Files()); diff != "" {
		t.Errorf("Files (-want +got):\n%s", diff)
	}
	if got := r.Written("sources[0].secrets[0]"); got != "${file:secret}" {
		t.Errorf("Written(reference) = %q", got)
	}
	if got := r.Written("sources[0].secrets[1]"); got != "" {
		t.Errorf("Written(literal) = %q", got)
	}
	put(t, path, "sources:\n  - {name: a, scheme: github, secrets: [\"${file:missing}\"]}\n")
	r, err = configfile.Load(configfile.Options{Path: path})
	if diff := cmp.Diff([]string{path, filepath.Join(dir, "missing")}, r.Files()); err == nil || diff != "" {
		t.Errorf("Files of a failed Load (%v) (-want +got):\n%s", err, diff)
	}
}
