package devbroker

import (
	"net/http"
	"time"

	"golang.org/x/time/rate"
)

// allowWrites takes n tokens, all or none: a refused call costs nothing. It
// serves reads too.
func allowWrites(l *rate.Limiter, n int) bool {
	return l == nil || n == 0 || l.AllowN(time.Now(), n)
}

// rateLimited is the answer of the KV and timer routes; a transaction's has no
// Retry-After (measured 1.3.0).
func rateLimited(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	answer(w, http.StatusTooManyRequests, []byte(`{"error":"rate_limited","reason":"rate_limited"}`))
}
