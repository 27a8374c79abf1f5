package dispatch_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
	"github.com/queenbridge/queenbridge/dispatch/httptarget"
)

// BenchmarkIsolation is the deliveries per second of four healthy targets
// beside one that hangs, as a part of those without it (undisturbed-ratio):
// both halves in the same run, in turn, so a busy machine disturbs them alike.
func BenchmarkIsolation(b *testing.B) {
	var alone, beside float64
	for b.Loop() {
		alone += healthyRate(b, false)
		beside += healthyRate(b, true)
	}
	b.ReportMetric(alone/float64(b.N), "alone-calls/s")
	b.ReportMetric(beside/float64(b.N), "beside-calls/s")
	b.ReportMetric(beside/alone, "undisturbed-ratio")
}

const (
	healthyTargets = 4
	healthyEvents  = 2000 // of each
)

// isolation is a broker, targets of which one may hang, and their dispatcher.
type isolation struct {
	client *queen.Client
	cfg    dispatch.Config
	done   chan struct{} // closed at the last call of the healthy targets
	free   chan struct{} // closed: the hanging target answers
}

// healthyRate delivers the events of the healthy targets and tells how many a
// second.
func healthyRate(b *testing.B, hanging bool) float64 {
	b.Helper()
	broker, err := devbroker.Open(devbroker.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = broker.Close() }()
	k := &isolation{done: make(chan struct{}), free: make(chan struct{})}
	k.client, err = queen.New(queen.Config{URLs: []string{"http://queen"}, Transport: broker.Transport()})
	if err != nil {
		b.Fatal(err)
	}
	k.cfg.Queen = k.client
	k.cfg.NewSender = func(t bridge.Target) (dispatch.Sender, error) { return httptarget.New(t, httptarget.Options{}) }
	fine, hangs := k.functions()
	defer fine.Close()
	defer hangs.Close()
	for i := range healthyTargets {
		k.add(b, fmt.Sprint("fine", i), fine.URL, healthyEvents)
	}
	k.add(b, "hanging", hangs.URL, 0)
	if hanging {
		fill(b, k.client, "hanging", healthyEvents)
	}
	return k.run(b)
}

func (k *isolation) functions() (fine, hangs *httptest.Server) {
	var calls atomic.Int64
	fine = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if calls.Add(1) == healthyTargets*healthyEvents {
			close(k.done)
		}
	}))
	hangs = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-k.free }))
	return fine, hangs
}

func (k *isolation) add(b *testing.B, name, url string, events int) {
	b.Helper()
	r, t := testRoute(name, name), testTarget(name)
	r.Target, t.HTTP.URL = name, url
	k.cfg.Routes, k.cfg.Targets = append(k.cfg.Routes, r), append(k.cfg.Targets, t)
	fill(b, k.client, name, events)
}

func (k *isolation) run(b *testing.B) (perSecond float64) {
	b.Helper()
	d, err := dispatch.New(k.cfg)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	begun := time.Now()
	go func() { ended <- d.Run(ctx) }()
	<-k.done
	perSecond = healthyTargets * healthyEvents / time.Since(begun).Seconds()
	close(k.free)
	stop()
	if err := <-ended; err != nil {
		b.Error(err)
	}
	return perSecond
}
