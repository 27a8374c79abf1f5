package queentest_test

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
)

// TestMain leaves the tests of a real broker out of a run that neither names
// one nor asks for one, nor selects tests by name: there would be nothing to
// test. They never pass untested. Most cases wait for a lease or a timer, so
// more of them run side by side than there are processors.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("QUEEN_REAL_URL") == "" && os.Getenv("QUEENBRIDGE_REQUIRE_REAL") == "" && flag.Lookup("test.run").Value.String() == "" {
		_ = flag.Set("test.skip", "^TestReal")
	}
	_ = flag.Set("test.parallel", "8")
	goleak.VerifyTestMain(m)
}

// real is a real Queen 1.3.0 with its default settings.
func real(t *testing.T) queentest.Broker {
	t.Helper()
	url := os.Getenv("QUEEN_REAL_URL")
	if url == "" {
		t.Fatal("no real Queen: QUEEN_REAL_URL is not set; hint: run \"make test-real\"")
	}
	return queentest.Broker{URL: url, Except: map[string]string{
		"Fire/QueueScopedPopIsWoken": "1.3.0 does not wake one: up to 53 s late (queen-contract.md §9.1)",
	}}
}

// script runs a command of real.sh, on the pair that QUEEN_REAL_RUN names.
func script(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("./real.sh", args...).CombinedOutput(); err != nil {
		t.Fatalf("real.sh %s: %v\n%s", args[0], err, out)
	}
}

func TestReal(t *testing.T) {
	queentest.Run(t, real)
}

// agesOf makes the ids of a queue a day old, where the broker keeps them.
const agesOf = `
update queen.log_txns set created_at = created_at - interval '1 day' where partition_id in
  (select p.id from queen.log_partitions p join queen.queues q on q.id = p.queue_id where q.name = 'QUEUE');
update queen.log_partitions set oldest_txn_at = oldest_txn_at - interval '1 day' where queue_id in
  (select id from queen.queues where name = 'QUEUE')`

func TestRealOldEvents(t *testing.T) {
	queentest.RunOld(t, func(t *testing.T) queentest.OldBroker {
		return queentest.OldBroker{Broker: real(t), Keeps: true, Forget: func(t *testing.T, queue string) {
			script(t, "psql", strings.ReplaceAll(agesOf, "QUEUE", queue))
		}}
	})
}

func TestRealOutage(t *testing.T) {
	queentest.RunOutage(t, func(t *testing.T) queentest.OutageBroker {
		return queentest.OutageBroker{Broker: real(t),
			Stop:  func(t *testing.T) { script(t, "db-stop") },
			Start: func(t *testing.T) { script(t, "db-start") }}
	})
}

// TestRealTimerLateness measures how late a consumer of retries sees a timer,
// with the built-in cure (a far timer pending, discovery pops) on a broker that
// does nothing else: at most 2 s.
func TestRealTimerLateness(t *testing.T) {
	queentest.RunLateness(t, real)
}
