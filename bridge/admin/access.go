package admin

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
)

// identity is who asks.
type identity struct {
	name string // of the token; shown and recorded
	role string
}

// roleOrder are the roles, each of which may do what those before it may.
var roleOrder = []string{bridge.RoleViewer, bridge.RoleOperator, bridge.RoleAdmin}

// may says that the identity's role includes another one.
func (i identity) may(role string) bool {
	return slices.Index(roleOrder, i.role) >= slices.Index(roleOrder, role)
}

// access decides who asks. Only hashes of tokens are kept: they have one
// length, and comparing them says nothing about the token.
type access struct {
	tokens atomic.Pointer[[]knownToken]
	burst  int // of wrong tokens; below 0: no bound

	mu       sync.Mutex
	failures *lru.Cache[string, *rate.Limiter]
}

type knownToken struct {
	identity
	hash [sha256.Size]byte
}

// Bounds of wrong tokens, by address: so many at once, then one in a while.
const (
	failureBurst     = 10
	failureInterval  = time.Second
	failureAddresses = 4096
)

func newAccess(c Config) *access {
	a := &access{burst: cmp.Or(c.WrongTokens, failureBurst)}
	a.failures, _ = lru.New[string, *rate.Limiter](failureAddresses) // fails only for a size below 1
	a.accept(c.Settings)
	return a
}

// accept makes the tokens of settings those that are accepted.
func (a *access) accept(settings bridge.AdminConfig) {
	tokens := []knownToken{}
	add := func(who identity, token bridge.Secret) {
		tokens = append(tokens, knownToken{who, sha256.Sum256([]byte(token.Reveal()))})
	}
	for _, t := range settings.Tokens {
		add(identity{t.Name, t.Role}, t.Token)
	}
	if settings.EnvToken != "" {
		add(identity{"QUEENBRIDGE_ADMIN_TOKEN", bridge.RoleAdmin}, settings.EnvToken)
	}
	a.tokens.Store(&tokens)
}

// open says that no token is asked for.
func (a *access) open() bool { return len(*a.tokens.Load()) == 0 }

// identify finds a token among the known ones; every one is compared.
func (a *access) identify(token string) (identity, bool) {
	hash := sha256.Sum256([]byte(token))
	var who identity
	found := false
	for _, known := range *a.tokens.Load() {
		if subtle.ConstantTimeCompare(hash[:], known.hash[:]) == 1 {
			who, found = known.identity, true
		}
	}
	return who, found
}

// limiter is the count of failed attempts of an address.
func (a *access) limiter(remote string) *rate.Limiter {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := network(remote)
	l, ok := a.failures.Get(key)
	if !ok {
		l = rate.NewLimiter(rate.Every(failureInterval), a.burst)
		a.failures.Add(key, l)
	}
	return l
}

// network is what counts as one sender: an IPv4 address, or the /64 that one
// machine of IPv6 has to itself.
func network(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}

// admit decides whether a request is heard at all, and who sent it.
func (s *Server) admit(q *request) error {
	if reason := browser(q.Request); reason != "" {
		return problem(adminapi.CodeForbidden, "%s", reason)
	}
	if s.access.open() {
		if !isLoopback(hostWithPort(q.Host)) {
			// A page whose name was made to point to 127.0.0.1 would be let in.
			return problem(adminapi.CodeForbidden, "without a token only http://127.0.0.1 and http://localhost are served, not http://%s", clip(q.Host))
		}
		q.who = identity{"loopback", bridge.RoleAdmin}
		return nil
	}
	token, ok := bearer(q.Header)
	if !ok {
		return errNoToken
	}
	if wrong := s.access.limiter(q.RemoteAddr); s.access.burst > 0 {
		if wrong.Tokens() < 1 {
			// Before the token is looked at: else guessing would go on.
			return problem(adminapi.CodeRateLimited, "too many requests with a wrong token: wait")
		}
		defer func() {
			if q.who.role == "" {
				wrong.Allow()
			}
		}()
	}
	who, known := s.access.identify(token)
	if !known {
		s.metrics.refused.Inc()
		return errNoToken
	}
	q.who = who
	return nil
}

var errNoToken = problem(adminapi.CodeUnauthenticated, "a token is needed: Authorization: Bearer TOKEN")

// bearer is the token of a request (RFC 6750 §2.1).
func bearer(h http.Header) (string, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}

// browser says why a request is refused that a browser made for a page of
// another site: the API answers no such page, and lets none be asked (no CORS).
func browser(r *http.Request) string {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return "requests of other sites are not served"
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return ""
	}
	_, host, found := strings.Cut(origin, "://")
	if !found || !strings.EqualFold(host, r.Host) {
		return "requests of other origins are not served"
	}
	return ""
}

// hostWithPort adds a port where a Host header has none.
func hostWithPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), "80")
}
