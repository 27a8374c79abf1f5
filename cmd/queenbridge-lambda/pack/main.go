// Command pack writes the archive of a Lambda function: the files given, each as
// the name in front of it, the same bytes for the same files wherever it runs.
// It leaves building them to the Makefile of deploy/lambda.
//
//	pack -o function.zip bootstrap=bin/queenbridge-lambda bridge.yaml=my.yaml
package main

import (
	"archive/zip"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

func main() {
	out := flag.String("o", "function.zip", "archive to write")
	flag.Parse()
	if err := pack(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func pack(out string, files []string) (err error) {
	if len(files) == 0 {
		return errors.New("name the files as NAME=PATH")
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := zip.NewWriter(f)
	for _, file := range files {
		name, path, ok := strings.Cut(file, "=")
		if !ok {
			return fmt.Errorf("%q is not of the form NAME=PATH", file)
		}
		if err := add(w, name, path); err != nil {
			return fmt.Errorf("add %s: %w", path, err)
		}
	}
	return w.Close()
}

// add gives every file the same time and the modes Lambda needs: it runs
// bootstrap, and reads the rest, as another user.
func add(w *zip.Writer, name, path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
	mode := fs.FileMode(0o644)
	if name == "bootstrap" {
		mode = 0o755
	}
	h.SetMode(mode)
	to, err := w.CreateHeader(h)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, in)
	return err
}
