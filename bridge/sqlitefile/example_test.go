package sqlitefile_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/queenbridge/queenbridge/bridge/sqlitefile"
)

func Example() {
	dir, err := os.MkdirTemp("", "sqlitefile")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	unlock, err := sqlitefile.Lock(dir)
	if err != nil {
		log.Fatal(err)
	}
	_, err = sqlitefile.Lock(dir)
	fmt.Println("a second owner is refused:", errors.Is(err, sqlitefile.ErrInUse))

	file := filepath.Join(dir, "events.db")
	db := sqlitefile.Open(file, "journal_mode(WAL)")
	torn, err := sqlitefile.Torn(context.Background(), db, file)
	fmt.Println("cut off by a crash:", torn, "bytes", err)
	fmt.Println(errors.Join(db.Close(), unlock()))
	// Output:
	// a second owner is refused: true
	// cut off by a crash: 0 bytes <nil>
	// <nil>
}
