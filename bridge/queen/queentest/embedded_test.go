package queentest_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
)

// embedded starts the embedded broker with 1.3.0's rate limit.
func embedded(t *testing.T, dir string) *devbroker.Broker {
	t.Helper()
	b, err := devbroker.Open(devbroker.Config{Dir: dir, RiderRate: 100})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func TestEmbeddedInMemory(t *testing.T) {
	queentest.Run(t, func(t *testing.T) queentest.Broker {
		return queentest.Broker{URL: "http://queen", Transport: embedded(t, "").Transport()}
	})
}

func TestEmbeddedOnDisk(t *testing.T) {
	queentest.Run(t, func(t *testing.T) queentest.Broker {
		server := httptest.NewServer(embedded(t, t.TempDir()))
		t.Cleanup(server.Close)
		return queentest.Broker{URL: server.URL}
	})
}

func TestEmbeddedOldEvents(t *testing.T) {
	queentest.RunOld(t, func(t *testing.T) queentest.OldBroker {
		b, err := devbroker.Open(devbroker.Config{ForgetAfter: 1500 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		return queentest.OldBroker{Broker: queentest.Broker{URL: "http://queen", Transport: b.Transport()}, Forget: func(*testing.T, string) {}}
	})
}

func TestEmbeddedTimerLateness(t *testing.T) {
	queentest.RunLateness(t, func(t *testing.T) queentest.Broker {
		return queentest.Broker{URL: "http://queen", Transport: embedded(t, "").Transport()}
	})
}

func TestEmbeddedGeneration2(t *testing.T) {
	queentest.Run(t, func(t *testing.T) queentest.Broker {
		b, err := devbroker.Open(devbroker.Config{Generation: 2, RiderRate: 100})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		return queentest.Broker{URL: "http://queen", Transport: b.Transport(), Generation: 2}
	})
}
