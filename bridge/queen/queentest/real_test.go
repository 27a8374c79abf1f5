package queentest_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
)

// TestMain leaves TestReal out of a run that neither names a real broker nor
// asks for one, nor selects tests by name: it would have nothing to test. It
// never passes untested.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("QUEEN_REAL_URL") == "" && os.Getenv("QUEENBRIDGE_REQUIRE_REAL") == "" && flag.Lookup("test.run").Value.String() == "" {
		_ = flag.Set("test.skip", "^TestReal$")
	}
	goleak.VerifyTestMain(m)
}

// TestReal checks a real Queen 1.3.0 with its default settings.
func TestReal(t *testing.T) {
	url := os.Getenv("QUEEN_REAL_URL")
	if url == "" {
		t.Fatal("no real Queen: QUEEN_REAL_URL is not set; hint: run \"make test-real\"")
	}
	queentest.Run(t, func(*testing.T) queentest.Broker {
		return queentest.Broker{URL: url, Except: map[string]string{
			"Fire/QueueScopedPopIsWoken": "1.3.0 does not wake one: up to 53 s late (queen-contract.md §9.1)",
		}}
	})
}
