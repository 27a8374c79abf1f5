package admin

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/bridge/rules"
)

// Config makes a Server.
type Config struct {
	// Rules is required.
	Rules *rules.Store
	// Settings name the tokens, and the address that decides whether none is
	// allowed.
	Settings bridge.AdminConfig
	// Status fills in what the catalog does not know: version, parts, problems,
	// the states of routes and targets.
	// Nil: nothing.
	Status func(context.Context) adminapi.Status
	// Schemes are what GET /v1/schemes lists.
	Schemes []adminapi.Scheme
	// Pauses stop and start routes and targets. Nil: the process cannot.
	Pauses Pauses
	// Tester calls targets with test events. Nil: the process cannot.
	Tester Tester
	// Deliveries are the recent attempts of this process. Nil: it makes none.
	Deliveries Deliveries
	// Letters are the dead letters and pending retries. Nil: the process cannot
	// reach them.
	Letters Letters
	// WrongTokens is how many requests with a wrong token an address may send at
	// once; then one each second. Defaults to 10; -1 means any number.
	WrongTokens int
	// Logger defaults to discarding. Every change is recorded in it.
	Logger *slog.Logger
	// Metrics registers the server's metrics. Nil: they are kept to itself.
	Metrics prometheus.Registerer
}

// Server is the admin API: an http.Handler for everything below /v1/. It is
// safe for concurrent use.
type Server struct {
	config  Config
	rules   *rules.Store
	log     *slog.Logger
	access  *access
	table   []endpoint
	metrics *metrics
	openAPI []byte
}

var _ http.Handler = (*Server)(nil)

// ErrNoToken says that the address is reachable from elsewhere and nobody
// would be asked for a token.
var ErrNoToken = errors.New("admin.addr is reachable from other machines and no token is set: " +
	"set QUEENBRIDGE_ADMIN_TOKEN or admin.tokens, or bind to 127.0.0.1")

// New makes the server. Without any token and with an address that is not
// loopback the error is ErrNoToken.
func New(c Config) (*Server, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Status == nil {
		c.Status = func(context.Context) adminapi.Status { return adminapi.Status{} }
	}
	s := &Server{config: c, rules: c.Rules, log: c.Logger, access: newAccess(c), metrics: newMetrics(c.Metrics)}
	if s.access.open() && !isLoopback(c.Settings.Addr) {
		return nil, ErrNoToken
	}
	s.table = s.endpoints()
	var err error
	s.openAPI, err = s.document()
	return s, err
}

// Retoken makes the tokens of settings the accepted ones, for requests that begin
// from then on. Where none is left it changes nothing, and the error is
// ErrNoToken: what asked for a token must not open by a slip of a file.
func (s *Server) Retoken(settings bridge.AdminConfig) error {
	if len(settings.Tokens) == 0 && settings.EnvToken == "" {
		return ErrNoToken
	}
	s.access.accept(settings)
	return nil
}

func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Bounds of one request.
const (
	maxBody       = 256 << 10
	readTimeout   = 10 * time.Second
	answerTimeout = 70 * time.Second
	// A test-fire takes as long as the function; Lambda functions may take
	// longer than this.
	handlerTimeout = 60 * time.Second
)

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(readTimeout)) // not every ResponseWriter can
	_ = control.SetWriteDeadline(time.Now().Add(answerTimeout))
	ctx, cancel := context.WithTimeout(r.Context(), handlerTimeout)
	defer cancel()
	q := &request{Request: r.WithContext(ctx), id: newRequestID()}
	a, err := s.answer(q)
	if err != nil {
		a = s.failure(q, err)
	}
	s.metrics.requests.WithLabelValues(q.template(), q.knownMethod(), statusClass(a.status)).Inc()
	s.write(w, q, a)
}

// puts says that a resource of a name would be made: what is wrong with the name
// is then a problem like any other.
func (q *request) puts(name string) bool {
	return q.Method == http.MethodPut && utf8.ValidString(name) && !strings.Contains(name, "\x00")
}

// answer finds the endpoint and asks it, once it is clear who asks.
func (s *Server) answer(q *request) (answer, error) {
	if err := s.admit(q); err != nil {
		return answer{}, err
	}
	e, err := s.find(q)
	if err != nil {
		return answer{}, err
	}
	q.endpoint = e
	if !q.who.may(e.role) {
		return answer{}, problem(adminapi.CodeForbidden, "token %q has the role %s; this takes %s", q.who.name, q.who.role, e.role)
	}
	if err := q.read(); err != nil {
		return answer{}, err
	}
	if name, has := q.vars["name"]; has && !q.puts(name) && !e.kind.ValidName(name) {
		return answer{}, problem(adminapi.CodeNotFound, "no %s can be called %q", e.kind.Singular(), clip(name))
	}
	return e.serve(q)
}
