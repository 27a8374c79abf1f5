package queen

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MinVersion is the oldest Queen supported: the oldest one measured. Timers
// and KV exist since 1.0.3.
const MinVersion = "1.3.0"

// UnsupportedError is a broker without timers or KV.
type UnsupportedError struct {
	// Engine and Version are the broker's own words; "" where it has none.
	Engine, Version string
	// Missing is what it lacks: timers or KV.
	Missing string
}

func (e *UnsupportedError) Error() string {
	seen := "a broker that names no engine (Queen 0.15 or something else)"
	if e.Engine != "" {
		seen = fmt.Sprintf("engine %s version %s", e.Engine, e.Version)
	}
	return fmt.Sprintf("unsupported broker: %s has no %s; Queen %s or newer is needed", seen, e.Missing, MinVersion)
}

// healthTimeout bounds a health call: its answer is wanted now.
const healthTimeout = 5 * time.Second

// Health is the broker's own word. A broker that says that it is not healthy
// is no error.
func (c *Client) Health(ctx context.Context) (Health, error) {
	a, err := c.do(ctx, &call{method: "GET", path: "/health", safe: true, timeout: min(healthTimeout, c.timeout)})
	if err != nil {
		return Health{}, err
	}
	var wire struct {
		Status   jsonText `json:"status"`
		Database jsonText `json:"database"`
		Engine   jsonText `json:"engine"`
		Version  jsonText `json:"version"`
	}
	if !a.ok() && a.status != http.StatusServiceUnavailable {
		return Health{}, a.statusError()
	}
	if err := json.Unmarshal(a.body, &wire); err != nil || wire.Status == "" {
		if !a.ok() {
			return Health{}, a.statusError()
		}
		return Health{}, a.misfit("not a health report")
	}
	h := Health{Healthy: a.ok() && wire.Status == "healthy", Engine: clip(string(wire.Engine), 64), Version: clip(string(wire.Version), 64)}
	if !h.Healthy {
		h.Detail = clip(string(wire.Status), 64)
		if wire.Database != "" {
			h.Detail += ", database " + clip(string(wire.Database), 64)
		}
	}
	return h, nil
}

// probeName is the queue and the KV key asked for: neither needs to exist,
// and asking creates neither.
const probeName = "queenbridge-probe"

// Probe asks what the broker can do and refuses one without timers and KV
// with a *UnsupportedError that names the version it saw: such a broker would
// drop them from a transaction in silence (queen-contract.md §1.3).
func (c *Client) Probe(ctx context.Context) (Health, error) {
	h, err := c.Health(ctx)
	if err != nil {
		return h, fmt.Errorf("probe broker: %w", err)
	}
	if h.Engine == "" { // 0.15, whose version says 1.0.0
		return h, &UnsupportedError{Missing: "timers"}
	}
	if _, err := c.timerPage(ctx, probeName, "", 1); err != nil {
		return h, h.missing("timers", err)
	}
	if _, err := c.KV(ctx, []KVOp{{Op: "get", Namespace: "queenbridge", Key: probeName}}); err != nil {
		return h, h.missing("KV", err)
	}
	if h.Older(MinVersion) {
		c.log.LogAttrs(ctx, slog.LevelWarn, "queen older than any version tested",
			slog.String("engine", h.Engine), slog.String("version", h.Version), slog.String("tested", MinVersion))
	}
	return h, nil
}

// missing turns the refusal of a route into what it means.
func (h Health) missing(what string, err error) error {
	if isStatus(err, http.StatusNotFound) || isStatus(err, http.StatusMethodNotAllowed) {
		return &UnsupportedError{Engine: h.Engine, Version: h.Version, Missing: what}
	}
	return fmt.Errorf("probe broker for %s: %w", what, err)
}

// PostgreSQL says that the broker is Queen 1.x, whose version Older compares.
func (h Health) PostgreSQL() bool { return h.Engine == "segments-rust" }

// Older says that the broker is a Queen 1.x (engine segments-rust) before a
// version such as 1.5.2. False for other engines and versions it cannot read.
func (h Health) Older(version string) bool {
	if !h.PostgreSQL() {
		return false
	}
	have, ok1 := versionParts(h.Version)
	want, ok2 := versionParts(version)
	if !ok1 || !ok2 {
		return false
	}
	for i := range have {
		if have[i] != want[i] {
			return have[i] < want[i]
		}
	}
	return false
}

// versionParts reads major.minor.patch; what follows a - or + is dropped.
func versionParts(s string) (parts [3]int, ok bool) {
	s, _, _ = strings.Cut(strings.TrimPrefix(s, "v"), "-")
	s, _, _ = strings.Cut(s, "+")
	fields := strings.Split(s, ".")
	if len(fields) != len(parts) {
		return parts, false
	}
	for i, f := range fields {
		n, err := strconv.Atoi(f)
		if err != nil || n < 0 {
			return parts, false
		}
		parts[i] = n
	}
	return parts, true
}
