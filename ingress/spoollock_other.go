//go:build !unix

package ingress

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// spoolLock keeps a second process out of a spool. Without flock it stays
// behind after a crash and must then be removed by hand.
const spoolLock = "lock"

func lockSpool(dir string) (unlock func() error, err error) {
	name := filepath.Join(dir, spoolLock)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w (remove %s if no bridge runs)", ErrSpoolInUse, name)
	}
	if err != nil {
		return nil, err
	}
	return func() error { return errors.Join(f.Close(), os.Remove(name)) }, nil
}
