package bridge_test

import (
	"strconv"
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
)

// The names and ids below are stored in Queen and known to functions: a change
// forgets duplicates, loses retries or renames webhook-ids. The hashes were
// computed by another program.
func TestNamesNeverChange(t *testing.T) {
	t.Parallel()
	origin := sampleOrigin()
	lineage := bridge.Lineage("ci", origin)
	tests := []struct{ name, got, want string }{
		{"KVNamespace", bridge.KVNamespace, "queenbridge"},
		{"RetryQueue", bridge.RetryQueue("ci"), "queenbridge-retry.ci"},
		{"DeadQueue", bridge.DeadQueue("ci"), "queenbridge-dead.ci"},
		{"LargeQueue", bridge.LargeQueue("ci"), "queenbridge-large.ci"},
		{"AwakeQueue", bridge.AwakeQueue, "queenbridge-awake"},
		{"AwakeKey", bridge.AwakeKey, "awake"},
		{"QuarantineQueue", bridge.QuarantineQueue("github"), "github.quarantine"},
		{"SourceLane", bridge.SourceLane("github", "github:abc", 16), "github.8"},
		{"SourceLane of one", bridge.SourceLane("github", "github:abc", 1), "github.0"},
		{"SourceLane of none", bridge.SourceLane("github", "github:abc", 0), "github.0"},
		{"RetryLane", bridge.RetryLane(lineage), "8"},
		{"DeadLane", bridge.DeadLane(lineage), "8"},
		{"LargeLane", bridge.LargeLane(lineage), "8"},
		{"Lineage", lineage, "bb0f91403412fc29264881a16a6c6d42"},
		{"BatchID", bridge.BatchID([]string{"dlv_a", "dlv_b"}), "bat_nbq6b3o5akthstzcenv5gpgyxmgv3hrt"},
		{"DeliveryID", bridge.DeliveryID("ci", origin), "dlv_5b4uy2tylmpmmpvsdvqd7haitmnnubzf"},
		{"TimerKey", bridge.TimerKey("l", 3), "l/3"},
		{"SettleTxn", bridge.SettleTxn("l", 3, "n"), "l/3/n"},
		{"ReplyTxn", bridge.ReplyTxn("l", 3), "l/3/reply"},
		{"RedriveTxn", bridge.RedriveTxn("l/3/n"), "l/3/n/r"},
		{"AttemptKey", bridge.AttemptKey("ci", "p-1"), "a/ci/p-1"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s = %q, want %q", tt.name, tt.got, tt.want)
		}
	}
}

func TestLineageTellsDeliveriesApart(t *testing.T) {
	t.Parallel()
	base := sampleOrigin()
	seen := map[string]string{bridge.Lineage("ci", base): "base"}
	for name, change := range map[string]func(*bridge.Origin){
		"queue":     func(o *bridge.Origin) { o.Queue = "other" },
		"partition": func(o *bridge.Origin) { o.Partition = "github.4" },
		"message":   func(o *bridge.Origin) { o.MessageID = "0199-8" },
		"shifted":   func(o *bridge.Origin) { o.Queue, o.Partition = "githubg", "ithub.3" },
	} {
		o := base
		change(&o)
		if other, taken := seen[bridge.Lineage("ci", o)]; taken {
			t.Errorf("Lineage of %s = that of %s", name, other)
		}
		seen[bridge.Lineage("ci", o)] = name
	}
	moved := base
	moved.MessageID, moved.PartitionID = "other", "other"
	if bridge.DeliveryID("ci", moved) != bridge.DeliveryID("ci", base) {
		t.Error("DeliveryID depends on the message id: a redelivery by the provider would get a new one")
	}
}

func TestLanesAreSpread(t *testing.T) {
	t.Parallel()
	count := map[string]int{}
	for i := range 6400 {
		count[bridge.RetryLane(bridge.Lineage("r", bridge.Origin{MessageID: strconv.Itoa(i)}))]++
	}
	if len(count) != bridge.RetryLanes {
		t.Fatalf("%d lanes in use, want %d", len(count), bridge.RetryLanes)
	}
	for lane, n := range count {
		if n < 50 || n > 170 {
			t.Errorf("lane %s has %d of 6400 (100 expected)", lane, n)
		}
	}
}

func TestKeysAndQueuesAreReadBack(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"r", "a-b_c", "x.y"} {
		for _, queue := range []string{bridge.RetryQueue(name), bridge.DeadQueue(name)} {
			if got, ok := bridge.RouteOfQueue(queue); !ok || got != name {
				t.Errorf("RouteOfQueue(%s) = %q, %v", queue, got, ok)
			}
		}
		if kind, got, ok := bridge.ParsePauseKey(bridge.PauseKey("route", name)); !ok || kind != "route" || got != name {
			t.Errorf("ParsePauseKey(PauseKey(route, %s)) = %q, %q, %v", name, kind, got, ok)
		}
	}
	for _, key := range []string{"", "pause/", "pause/route", "pause/route/", "a/route/x"} {
		if _, _, ok := bridge.ParsePauseKey(key); ok {
			t.Errorf("ParsePauseKey(%q) is ok", key)
		}
	}
	if _, ok := bridge.RouteOfQueue("github"); ok {
		t.Error("a source's queue belongs to a route")
	}
}
