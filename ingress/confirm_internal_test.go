package ingress

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"code.dny.dev/ssrf"
)

// A name of Amazon's that resolves into the network we stand in must not be
// connected to.
func TestAConfirmationConnectsToPublicAddressesOnly(t *testing.T) {
	t.Parallel()
	var called atomic.Bool
	inside := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called.Store(true) }))
	defer inside.Close()
	m, err := newMetrics(nil, new(atomic.Int64))
	if err != nil {
		t.Fatal(err)
	}
	c := newConfirmer(nil, slog.New(slog.DiscardHandler), m)
	for _, address := range []string{inside.URL + "/?Token=t0ken", "https://127.0.0.1/?Token=t0ken", "https://169.254.169.254/?Token=t0ken", "https://[::1]/?Token=t0ken"} {
		err := c.call(address)
		if err == nil || !errors.Is(err, ssrf.ErrProhibitedIP) && !errors.Is(err, ssrf.ErrProhibitedPort) || strings.Contains(err.Error(), "t0ken") {
			t.Errorf("call(%s) = %v, want a refused address without the token", address, err)
		}
	}
	if err := c.call("http://sns.us-east-1.amazonaws.com/"); err == nil {
		t.Error("plain HTTP was called")
	}
	if called.Load() {
		t.Error("the server inside was called")
	}
}
