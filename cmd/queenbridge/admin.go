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

// adminParts are what the admin listener serves.
type adminParts struct {
	reg    *prometheus.Registry
	checks []check
	api    http.Handler
}

// adminHandler serves /livez, /readyz and /metrics, without a token, and the
// admin API, which asks for one.
func adminHandler(p adminParts) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "alive\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { readyz(w, r, p.checks) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(p.reg, promhttp.HandlerOpts{Registry: p.reg}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/") { // past the mux, which cleans paths: a name may hold a slash
			p.api.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// readyz answers 200, or 503, with one line for each part that is not ready.
func readyz(w http.ResponseWriter, r *http.Request, checks []check) {
	lines, ready := judge(r.Context(), checks)
	body := ""
	for _, line := range lines {
		body += line + "\n"
	}
	switch {
	case !ready:
		plain(w, http.StatusServiceUnavailable, body)
	case len(lines) > 0:
		plain(w, http.StatusOK, "degraded\n"+body)
	default:
		plain(w, http.StatusOK, "ready\n")
	}
}

// judge asks all checks. Lines say what is wrong; ready, that the process does
// what it is there for all the same.
func judge(ctx context.Context, checks []check) (lines []string, ready bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	ready = true
	for _, c := range checks {
		wrong := c.wrong(ctx)
		if wrong == "" {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: %s", c.name, wrong))
		if c.spared == nil || !c.spared(ctx) {
			ready = false
		}
	}
	return lines, ready
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}
