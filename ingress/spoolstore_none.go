//go:build nospool

package ingress

import (
	"errors"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// A build with the tag nospool is without the spool and without SQLite: where
// no disk lasts, they would only be weight.

const spoolFile = "spool.db"

var errNoSpool = errors.New("this program was built without the spool (build tag nospool)")

type spoolStore struct{ torn int64 }

type spooledEvent struct {
	seq  int64
	item queen.Item
}

func openSpoolStore(string) (*spoolStore, error) { return nil, errNoSpool }
func readSpoolStore(string) (*spoolStore, error) { return nil, errNoSpool }

func (*spoolStore) append([]queen.Item, time.Time) error { return errNoSpool }
func (*spoolStore) next(string, int64, int, int64) ([]spooledEvent, error) {
	return nil, errNoSpool
}
func (*spoolStore) settle([]int64, map[int64]string) error { return errNoSpool }
func (*spoolStore) count() ([]SpooledQueue, error)         { return nil, errNoSpool }
func (*spoolStore) oldest() (time.Time, error)             { return time.Time{}, errNoSpool }
func (*spoolStore) shrink() error                          { return errNoSpool }
func (*spoolStore) close() error                           { return nil }
