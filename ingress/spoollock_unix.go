//go:build unix

package ingress

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// spoolLock keeps a second process out of a spool. The system lets go of it
// when the process dies, however it dies.
const spoolLock = "lock"

func lockSpool(dir string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, spoolLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrSpoolInUse
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return f.Close, nil
}
