package rules

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// Queen is what the catalog needs of Queen; *queen.Client is one.
type Queen interface {
	KV(ctx context.Context, ops []queen.KVOp) ([]queen.KVResult, error)
}

var _ Queen = (*queen.Client)(nil)

// Config makes a Store.
type Config struct {
	File  File
	Queen Queen
	// Keys seal literal secrets. The zero Keyring refuses them.
	Keys Keyring
	// References makes what replaces the references in the text of one node by
	// what they stand for, as in the configuration file; see bridge.Node. It is
	// made anew for each file, and asked once for each text. Nil leaves
	// references as they are.
	References func() func(*bridge.Node)
	// Left says what a draining route still has in Queen beside its source; ""
	// is nothing, and the route may go. Nil: no route goes.
	Left func(ctx context.Context, route string) (string, error)
	// Settled says that no process holds an event of a draining route's source;
	// none takes one any more. Then the route need not wait for leases to end.
	// Nil: it always does.
	Settled func(ctx context.Context, route bridge.Route) (bool, error)
	// Logger defaults to discarding.
	Logger *slog.Logger
	// Metrics registers the catalog's metrics. Nil: they are kept to itself.
	Metrics prometheus.Registerer
	// Poll is the mean time between two looks at the stored resources.
	// Defaults to 2 seconds, so that with jitter none is later than 3.
	Poll time.Duration
	// KnownAfter is how long a deleted route is kept at least, so that every
	// process knows. Defaults to 10 seconds: the poll, once more where a look
	// failed.
	KnownAfter time.Duration
	// DrainAfter is how long a deleted route is kept that is not Settled, so
	// that no lease of its source is left. Defaults to 65 seconds: the poll, and
	// the longest lease.
	DrainAfter time.Duration
}

// tried is the catalog with which a change was checked, until another one is
// handed out.
type tried struct {
	catalog *Catalog
	write   string // the mark of the row that was added
}

// Defaults of Config.
const (
	defaultPoll       = 2 * time.Second
	defaultKnownAfter = 10 * time.Second
	defaultDrainAfter = 65 * time.Second
)

// wholeEvery bounds how long an unchanged generation is believed where there are
// more rows than one look sees: a restored backup, or a hand in the KV, changes
// rows without it.
const wholeEvery = time.Minute

// Store is the live catalog. It is safe for concurrent use. See New and Run.
type Store struct {
	config  Config
	queen   Queen
	keys    Keyring
	log     *slog.Logger
	metrics *metrics
	now     func() time.Time

	// writing holds one value while somebody reads or writes rows; mu, after
	// it, guards the state; over a call it is only held where a reference is
	// looked up.
	writing  chan struct{}
	readAt   time.Time                 // when the last successful look began; for writing's holder
	lastRead atomic.Pointer[time.Time] // the same, for everybody
	wholeAt  time.Time                 // when all rows were last read
	drained  map[bridge.Resource]drainState

	mu          sync.Mutex
	file        File
	rows        map[string]stored
	generation  int64
	synced      time.Time
	filters     map[string]filterCheck
	parsed      map[string]parsed
	tried       tried
	references  *references
	subscribers []func(*Catalog)
	reported    []string // problems that were logged

	awayMu sync.Mutex
	away   string // why the rows could not be read last, "" where they were

	catalog atomic.Pointer[Catalog]
}

// New makes a catalog of the file alone; Run adds what is stored.
func New(c Config) *Store {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.References == nil {
		c.References = func() func(*bridge.Node) { return func(*bridge.Node) {} }
	}
	if c.Poll <= 0 {
		c.Poll = defaultPoll
	}
	if c.KnownAfter <= 0 {
		c.KnownAfter = defaultKnownAfter
	}
	if c.DrainAfter <= 0 {
		c.DrainAfter = defaultDrainAfter
	}
	s := &Store{
		config: c, queen: c.Queen, keys: c.Keys, log: c.Logger, metrics: newMetrics(c.Metrics), now: time.Now,
		references: newReferences(c.References()),
		file:       c.File, rows: map[string]stored{}, filters: map[string]filterCheck{}, parsed: map[string]parsed{},
		writing: make(chan struct{}, 1), drained: map[bridge.Resource]drainState{}, away: notReadYet,
	}
	s.catalog.Store(s.build(s.file, s.rows))
	return s
}

// Catalog is the present state.
func (s *Store) Catalog() *Catalog { return s.catalog.Load() }

// LastRead is when the stored resources were last known to be those of the
// catalog; zero: not yet.
func (s *Store) LastRead() time.Time {
	if t := s.lastRead.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

// noteRead notes a successful look. writing is held.
func (s *Store) noteRead(begun time.Time) {
	s.readAt = begun
	s.lastRead.Store(&begun)
}

// Subscribe calls f with every later state, one after the other, before the
// change that led to it is reported as made. f must not call the Store.
func (s *Store) Subscribe(f func(*Catalog)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribers = append(s.subscribers, f)
}

// SetFile replaces the file's part, and resolves the references of all
// resources anew.
func (s *Store) SetFile(file File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.file, s.references = file, newReferences(s.config.References())
	s.publish()
}

// publish builds the catalog of the present state and hands it out. mu is held.
func (s *Store) publish() {
	s.handOut(s.build(s.file, s.rows))
}

// handOut makes a catalog the present one. mu is held.
func (s *Store) handOut(c *Catalog) {
	s.tried = tried{}
	maps.DeleteFunc(s.parsed, func(key string, _ parsed) bool { _, kept := s.rows[key]; return !kept })
	c.Generation, c.Synced = s.generation, s.synced
	s.catalog.Store(c)
	s.report(c)
	for _, f := range s.subscribers {
		f(c)
	}
}

// report says once what is stored and not in use.
func (s *Store) report(c *Catalog) {
	s.metrics.observe(c)
	problems := c.Problems()
	if slices.Equal(problems, s.reported) {
		return
	}
	s.reported = problems
	if len(problems) > 0 {
		s.log.Error("stored rules that are not in use", "problems", problems)
		return
	}
	s.log.Info("every stored rule is in use")
}

// Notes says what an operator should know: what is stored and not in use, and
// that the stored resources cannot be read. The catalog works all the same.
func (s *Store) Notes() []string {
	notes := s.Catalog().Problems()
	if away := s.whyAway(); away != "" && away != notReadYet {
		notes = append(notes, away)
	}
	return notes
}

// whyAway is why the stored resources could not be read last, "" where they
// were.
func (s *Store) whyAway() string {
	s.awayMu.Lock()
	defer s.awayMu.Unlock()
	return s.away
}

// Run follows the stored resources until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	for {
		s.follow(ctx)
		wait := time.Duration(float64(s.config.Poll) * (0.75 + rand.Float64()/2)) //nolint:gosec // jitter
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// callTimeout bounds the calls of one look or one change.
const callTimeout = 10 * time.Second

// follow looks once.
func (s *Store) follow(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if s.begin(ctx) != nil {
		return
	}
	defer s.end()
	err := s.look(ctx)
	s.noteAway(ctx, err)
	if err == nil {
		s.finishDrained(ctx)
	}
}

// begin waits until nobody else reads or writes rows.
func (s *Store) begin(ctx context.Context) error {
	select {
	case s.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) end() { <-s.writing }

// syncTimeout bounds how long a reader waits for what others just changed.
const syncTimeout = 2 * time.Second

// Sync brings the catalog up to what is stored now: what another process
// changed is then seen before its answer could have been. While Queen is away
// it returns at once, and the catalog is the last good one.
func (s *Store) Sync(ctx context.Context) {
	asked := s.now()
	away := s.whyAway()
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if away != "" && away != notReadYet || s.begin(ctx) != nil {
		return
	}
	defer s.end()
	if s.readAt.Before(asked) { // nobody else looked meanwhile
		s.noteAway(ctx, s.refresh(ctx))
	}
}

const notReadYet = "not read yet"

// noteAway logs once that the stored resources cannot be read, and once that
// they can again.
func (s *Store) noteAway(ctx context.Context, err error) {
	s.awayMu.Lock()
	defer s.awayMu.Unlock()
	was := s.away
	s.away = ""
	if err != nil {
		s.away = "cannot be read from Queen: " + err.Error()
	}
	s.metrics.read(err)
	switch {
	case err != nil && ctx.Err() == nil && (was == "" || was == notReadYet):
		s.log.Error("stored rules cannot be read; running on with the last good ones", "error", err)
	case err == nil && was != "" && was != notReadYet:
		s.log.Info("stored rules can be read again")
	}
}
