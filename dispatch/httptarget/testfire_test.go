package httptarget_test

import (
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
	"github.com/queenbridge/queenbridge/dispatch/httptarget"
)

// user-problems.md: "the same guard on test-fire": what an operator lets the
// bridge call is not reached either, and no secret comes back.
func TestTestFireIsGuardedAsDeliveriesAre(t *testing.T) {
	t.Parallel()
	broker, err := devbroker.Open(devbroker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close() })
	client, err := queen.New(queen.Config{URLs: []string{"http://queen"}, Transport: broker.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	const secret = "s3cret-of-the-target"
	target := bridge.Target{
		Name: "inside", Network: bridge.Network{Profile: "public"}, Auth: bridge.Auth{Type: bridge.AuthBearer, Token: secret},
		HTTP: &bridge.HTTPTarget{URL: "http://127.0.0.1:1/latest?key=" + secret, Timeout: 10 * time.Second},
	}
	d, err := dispatch.New(dispatch.Config{
		Routes:  []bridge.Route{{Name: "r", Queue: "q", Target: "inside", Retry: bridge.RetryPolicy{MaxAttempts: 3, MaxAge: time.Hour, Backoff: []time.Duration{time.Second}, Jitter: "none"}}},
		Targets: []bridge.Target{target}, Queen: client,
		NewSender: func(t bridge.Target) (dispatch.Sender, error) { return httptarget.New(t, httptarget.Options{}) },
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.TestFire(t.Context(), "r", bridge.Event{Body: []byte("{}")})
	if err != nil || got.Status != 0 || got.Outcome != bridge.Hold || !strings.Contains(got.Error, "127.0.0.1") {
		t.Errorf("TestFire = %+v, %v; want the address refused", got, err)
	}
	if strings.Contains(got.Error, secret) {
		t.Errorf("the error shows a secret: %s", got.Error)
	}
}
