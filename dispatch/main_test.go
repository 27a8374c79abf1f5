package dispatch_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain leaves the tests of a real broker out of a run that neither names
// one nor asks for one, nor selects tests by name. They never pass untested.
func TestMain(m *testing.M) {
	flag.Parse()
	if dir, child := os.LookupEnv(brokerChild); child {
		serveBroker(dir)
	}
	if os.Getenv("QUEEN_REAL_URL") == "" && os.Getenv("QUEENBRIDGE_REQUIRE_REAL") == "" && flag.Lookup("test.run").Value.String() == "" {
		_ = flag.Set("test.skip", "^TestReal")
	}
	goleak.VerifyTestMain(m)
}
