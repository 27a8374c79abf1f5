package configfile

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// quiet is how long files must rest before they are looked at: editors
	// and copies write in several steps.
	quiet = 200 * time.Millisecond
	// quietAtMost bounds the wait where something in a directory never rests.
	quietAtMost = 2 * time.Second
)

// Watcher notices changes of files by what they hold. It watches their
// directories, not the files: editors replace a file, and Kubernetes swaps a
// link beside it (a ConfigMap's ..data). What only touches a file is no
// change. Network file systems may tell nothing; SIGHUP is for these.
type Watcher struct {
	notify *fsnotify.Watcher

	mu    sync.Mutex
	files map[string]digest
}

// digest is what a file held; the zero value: it could not be read.
type digest [sha256.Size]byte

// NewWatcher makes a watcher of no files. Close it.
func NewWatcher() (*Watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch files: %w", err)
	}
	return &Watcher{notify: notify, files: make(map[string]digest)}, nil
}

// Close ends the watch, and Run.
func (w *Watcher) Close() error { return w.notify.Close() }

// Watch says which files are watched from now on; those that were watched
// before are still compared with what they held then. It reports whether one
// is new: what was read of that before may be old. The error names directories
// that cannot be watched; the others are.
func (w *Watcher) Watch(files []string) (added bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := make(map[string]digest, len(files))
	err = w.watchDirectories(files)
	for _, file := range files {
		held, known := w.files[file]
		if !known {
			held, added = digestOf(file), true
		}
		next[file] = held
	}
	w.files = next
	return added, err
}

// watchDirectories watches where the files are, and where links lead to.
func (w *Watcher) watchDirectories(files []string) error {
	var want []string
	for _, file := range files {
		want = append(want, filepath.Dir(file))
		if real, err := filepath.EvalSymlinks(file); err == nil {
			want = append(want, filepath.Dir(real))
		}
	}
	slices.Sort(want)
	want = slices.Compact(want)
	have := w.notify.WatchList()
	var errs []error
	for _, dir := range want {
		if !slices.Contains(have, dir) {
			if err := w.notify.Add(dir); err != nil {
				errs = append(errs, fmt.Errorf("watch directory %s: %w", dir, err))
			}
		}
	}
	for _, dir := range have {
		if !slices.Contains(want, dir) {
			_ = w.notify.Remove(dir) // it may be gone, and with it the watch
		}
	}
	return errors.Join(errs...)
}

// Run calls changed each time that files hold something else than before,
// once they rest, until ctx ends or the watcher is closed. changed is called
// by the goroutine of Run.
func (w *Watcher) Run(ctx context.Context, changed func()) error {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	var latest time.Time // when to look however much happens
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case _, open := <-w.notify.Events:
			if !open {
				return nil
			}
			if latest.IsZero() {
				latest = time.Now().Add(quietAtMost)
			}
			timer.Reset(min(quiet, time.Until(latest)))
		case _, open := <-w.notify.Errors:
			if !open {
				return nil
			}
			timer.Reset(quiet) // events were lost: look
		case <-timer.C:
			latest = time.Time{}
			if w.differs() {
				changed()
			}
		}
	}
}

// differs compares the files with what they held, and remembers what they
// hold now.
func (w *Watcher) differs() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	differs := false
	files := make([]string, 0, len(w.files))
	for file, held := range w.files {
		files = append(files, file)
		if now := digestOf(file); now != held {
			w.files[file], differs = now, true
		}
	}
	_ = w.watchDirectories(files) // a link may lead elsewhere now; Watch reports what cannot be watched
	return differs
}

func digestOf(file string) digest {
	data, err := readAtMost(file, maxFile)
	if err != nil {
		return digest{}
	}
	return sha256.Sum256(data)
}
