package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// check is one part's word on its readiness: "" is ready.
type check struct {
	name  string
	wrong func(context.Context) string
	// spared says that the process does what it is there for all the same: it
	// is degraded, not unready. Nil: never.
	spared func(context.Context) bool
}

// adminHandler serves /livez, /readyz and /metrics, without a token.
func adminHandler(reg *prometheus.Registry, checks []check) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "alive\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { readyz(w, r, checks) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{Registry: reg}))
	return mux
}

// readyz answers 200, or 503, with one line for each part that is not ready.
func readyz(w http.ResponseWriter, r *http.Request, checks []check) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	var b strings.Builder
	status, word := http.StatusOK, "ready\n"
	for _, c := range checks {
		wrong := c.wrong(ctx)
		if wrong == "" {
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", c.name, wrong)
		if word = "degraded\n"; c.spared == nil || !c.spared(ctx) {
			status = http.StatusServiceUnavailable
		}
	}
	if status != http.StatusOK {
		word = ""
	}
	plain(w, status, word+b.String())
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}
