package ingress_test

import (
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
)

// storedEvents decodes what is stored.
func storedEvents(t *testing.T, s *queentest.Shelf) []bridge.Event {
	t.Helper()
	var out []bridge.Event
	for _, item := range s.Items() {
		e, ours, err := bridge.DecodeEvent(item.Payload)
		if err != nil || !ours {
			t.Fatalf("DecodeEvent(%s) = %v, ours %v", item.Payload, err, ours)
		}
		if e.ID != item.TransactionID {
			t.Errorf("event id %q, transaction id %q: want the same", e.ID, item.TransactionID)
		}
		out = append(out, e)
	}
	return out
}

// ids are the transaction ids of items.
func ids(items []queen.Item) []string {
	var out []string
	for _, item := range items {
		out = append(out, item.TransactionID)
	}
	return out
}
