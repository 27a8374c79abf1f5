//go:build !unix

package devbroker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// lockFile keeps a second process out of a data directory. Without flock it
// stays behind after a crash and must then be removed by hand.
const lockFile = "lock"

func lockDir(dir string) (unlock func() error, err error) {
	name := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w: %s (remove %s if no broker runs)", errInUse, dir, name)
	}
	if err != nil {
		return nil, err
	}
	return func() error { return errors.Join(f.Close(), os.Remove(name)) }, nil
}
