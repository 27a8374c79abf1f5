package bridge_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
)

// TestFailureClassesAreAllOfThem: every constant of the type.
func TestFailureClassesAreAllOfThem(t *testing.T) {
	t.Parallel()
	code, err := os.ReadFile("delivery.go")
	if err != nil {
		t.Fatal(err)
	}
	var want []bridge.FailureClass
	for _, found := range regexp.MustCompile(`FailureClass = "([^"]+)"`).FindAllStringSubmatch(string(code), -1) {
		want = append(want, bridge.FailureClass(found[1]))
	}
	if diff := cmp.Diff(want, bridge.FailureClasses()); diff != "" {
		t.Errorf("FailureClasses (-want +got):\n%s", diff)
	}
}
