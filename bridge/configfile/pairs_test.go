package configfile_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/configfile"
)

var update = flag.Bool("update", false, "write what the tests get into testdata")

// TestFiles loads each testdata/*.yaml and compares what comes of it, problems
// or the effective configuration, with the .want beside it.
func TestFiles(t *testing.T) {
	t.Setenv("GITHUB_SECRET", "s3cret")
	t.Setenv("PORT_TEXT", "8090")
	t.Setenv("FIVE", "5")
	t.Setenv("BAD", "tops3cret")
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata: %d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			got := outcome(file)
			wantFile := strings.TrimSuffix(file, ".yaml") + ".want"
			if *update {
				if err := os.WriteFile(wantFile, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(wantFile)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, secret := range []string{"s3cret", "tops3cret"} {
				if strings.Contains(got, secret) {
					t.Errorf("a secret is shown:\n%s", got)
				}
			}
		})
	}
}

// outcome is what a user sees of a file: warnings, then problems or the
// configuration in effect.
func outcome(file string) string {
	r, err := configfile.Load(configfile.Options{Path: file})
	var b strings.Builder
	problems, failed := err.(*configfile.Error) //nolint:errorlint // Load documents it
	warnings := r.Warnings
	if failed {
		warnings = problems.Warnings
	}
	for _, w := range warnings {
		b.WriteString("warning: " + w.String() + "\n")
	}
	switch {
	case failed:
		b.WriteString(err.Error() + "\n")
	case err != nil:
		b.WriteString("error: " + err.Error() + "\n")
	default:
		b.Write(r.Print())
	}
	return strings.ReplaceAll(b.String(), "testdata/", "")
}
