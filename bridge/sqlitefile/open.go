package sqlitefile

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net/url"

	"modernc.org/sqlite"
)

// Open returns the database in a file, which the first use makes where there is
// none. Every connection waits up to 10 s for another one, syncs at each commit
// and has these pragmas besides, such as journal_mode(WAL). Close it.
func Open(file string, pragmas ...string) *sql.DB {
	return sql.OpenDB(connector{dsn(file, "", pragmas)})
}

// OpenReadOnly returns the database in a file for looking at it, also while
// another process writes: nothing is recovered or folded. Close it.
func OpenReadOnly(file string) *sql.DB {
	return sql.OpenDB(connector{dsn(file, "ro", nil)})
}

// dsn names a file and the pragmas of each connection to it.
func dsn(file, mode string, pragmas []string) string {
	q := url.Values{}
	for _, p := range append([]string{"busy_timeout(10000)", "synchronous(FULL)"}, pragmas...) {
		q.Add("_pragma", p)
	}
	if mode != "" {
		q.Set("mode", mode)
	}
	return "file:" + (&url.URL{Path: file}).EscapedPath() + "?" + q.Encode()
}

// connector opens connections without asking for a driver by its registered
// name, which anybody may have taken.
type connector struct{ dsn string }

// Connect opens one connection.
func (c connector) Connect(context.Context) (driver.Conn, error) {
	return new(sqlite.Driver).Open(c.dsn)
}

// Driver returns the driver.
func (c connector) Driver() driver.Driver { return new(sqlite.Driver) }
