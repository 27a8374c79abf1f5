package ingress_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(spoolChild); dir != "" {
		spoolUntilKilled(dir)
	}
	if addr := os.Getenv(holdChild); addr != "" {
		holdConnections(addr)
	}
	goleak.VerifyTestMain(m)
}
