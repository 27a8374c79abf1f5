package queen_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func TestTrace(t *testing.T) {
	t.Parallel()
	c, b := answering(t, 201, `{"success":true,"traceId":"c794f3da-67b2-40d8-b441-3be854085322"}`)
	note := queen.Trace{TransactionID: `a"1`, PartitionID: "p", Group: "g", Event: "retry", Names: []string{"one", "two"}, Data: json.RawMessage(`{"n":1}`)}
	if err := c.Trace(t.Context(), note); err != nil {
		t.Fatal(err)
	}
	want := `{"transactionId":"a\"1","partitionId":"p","consumerGroup":"g","eventType":"retry","traceNames":["one","two"],"data":{"n":1}}`
	if got := b.last(t); got.uri != "/api/v1/traces" || got.body != want {
		t.Errorf("sent %s %s, want %s", got.uri, got.body, want)
	}
	for name, change := range map[string]func(*queen.Trace){
		"no transaction id":   func(n *queen.Trace) { n.TransactionID = "" },
		"no partition":        func(n *queen.Trace) { n.PartitionID = "" },
		"long transaction id": func(n *queen.Trace) { n.TransactionID = strings.Repeat("ä", 256) },
		"NUL":                 func(n *queen.Trace) { n.TransactionID = "a\x00" },
		"no JSON":             func(n *queen.Trace) { n.Data = json.RawMessage(`{`) },
	} {
		wrong := note
		change(&wrong)
		if err := c.Trace(t.Context(), wrong); err == nil || len(b.requests()) != 1 {
			t.Errorf("%s: %v after %d requests", name, err, len(b.requests()))
		}
	}
	c, b = answering(t, 500, `{"error":"pool"}`)
	if err := c.Trace(t.Context(), note); err == nil || len(b.requests()) != 1 {
		t.Errorf("Trace refused: %v after %d requests", err, len(b.requests()))
	}
}
