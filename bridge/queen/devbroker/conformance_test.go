package devbroker_test

import (
	"net/http/httptest"
	"testing"

	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
)

// The broker passes the suite that a real Queen passes: over a listener and in
// memory, and in process on a directory.
func TestConformance(t *testing.T) {
	t.Parallel()
	t.Run("memory over tcp", func(t *testing.T) {
		t.Parallel()
		queentest.Run(t, func(t *testing.T) queentest.Broker {
			a := open(t, devbroker.Config{RiderRate: 100})
			server := httptest.NewServer(a.broker)
			t.Cleanup(server.Close)
			return queentest.Broker{URL: server.URL}
		})
	})
	t.Run("directory in process", func(t *testing.T) {
		t.Parallel()
		queentest.Run(t, func(t *testing.T) queentest.Broker {
			a := open(t, devbroker.Config{RiderRate: 100, Dir: t.TempDir()})
			return queentest.Broker{URL: "http://embedded", Transport: a.broker.Transport()}
		})
	})
}
