//go:build !unix

package sqlitefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Lock keeps every other process out of a directory, or fails with ErrInUse at
// once. Without flock the file stays behind after a crash and must then be
// removed by hand.
func Lock(dir string) (unlock func() error, err error) {
	name := filepath.Join(dir, lockName)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("lock %s: %w (remove that file if no process of the bridge runs)", name, ErrInUse)
	}
	if err != nil {
		return nil, err
	}
	return func() error { return errors.Join(f.Close(), os.Remove(name)) }, nil
}
