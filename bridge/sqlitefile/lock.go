package sqlitefile

import "errors"

// ErrInUse says that another process holds the lock of a directory.
var ErrInUse = errors.New("in use by another process")

// lockName is the file in the directory that carries the lock.
const lockName = "lock"
