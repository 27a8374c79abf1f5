package main

import (
	"bytes"
	"strings"
	"testing"
)

// A secret that a provider hands over goes to the terminal, once and whole.
func TestAHandedOverSecretIsPrinted(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := &bridgeProcess{terminal: &out}
	b.showSecret("tasks", "b537207f20cbfa02")
	if text := out.String(); strings.Count(text, "b537207f20cbfa02") != 1 || !strings.Contains(text, `"tasks"`) {
		t.Errorf("printed %q", text)
	}
}
