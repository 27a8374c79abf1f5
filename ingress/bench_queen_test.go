package ingress_test

import (
	"testing"

	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// embedded is a client of an embedded broker of its own: in memory, or in a
// directory.
func embedded(t testing.TB, c devbroker.Config) *queen.Client {
	t.Helper()
	broker, err := devbroker.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	client, err := queen.New(queen.Config{URLs: []string{"http://embedded"}, Transport: broker.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		if err := broker.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

func benchQueen(b testing.TB) *queen.Client { return embedded(b, devbroker.Config{}) }
