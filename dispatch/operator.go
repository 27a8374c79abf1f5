package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// OperatorQueen is what an Operator needs of Queen; *queen.Client is one.
type OperatorQueen interface {
	DeadLetters(ctx context.Context, q queen.DeadLetterQuery) ([]queen.DeadLetter, error)
	DeleteDeadLetter(ctx context.Context, partitionID, txn string) error
	Push(ctx context.Context, items []queen.Item) ([]queen.PushVerdict, error)
	Schedule(ctx context.Context, timers []queen.Timer) ([]queen.TimerStatus, error)
	CancelTimer(ctx context.Context, queue, key string) (queen.TimerStatus, error)
	ListTimers(ctx context.Context, queue, after string, limit int) (rows []queen.TimerRow, next string, err error)
	PeekTimer(ctx context.Context, queue, key string) (t queen.PendingTimer, found bool, err error)
	Message(ctx context.Context, partitionID, txn string) (queen.StoredMessage, error)
	Partitions(ctx context.Context, queue string) (map[string]string, error)
	GroupPartitions(ctx context.Context, group, queue string) ([]queen.GroupPartition, error)
	Seek(ctx context.Context, s queen.SeekRequest) error
	Depth(ctx context.Context, queue, group string) (int, error)
	KV
}

var _ OperatorQueen = (*queen.Client)(nil)

// ErrRedriveRefused says that a route takes no redrives: it is being deleted, or
// there is none of that name.
var ErrRedriveRefused = errors.New("the route takes no redrives")

// ErrNoDeadLetter says that there is no such dead letter, or none any more.
var ErrNoDeadLetter = errors.New("there is no such dead letter")

// OperatorConfig makes an Operator.
type OperatorConfig struct {
	// Queen is required.
	Queen OperatorQueen
	// Accepts says why a route takes no redrives or replays now; nil: it does.
	// Retries of a route that is gone would be taken up by nobody, and those of
	// a draining one would keep it. Required.
	Accepts func(ctx context.Context, route string) error
	// Logger defaults to discarding.
	Logger *slog.Logger
}

// Operator does by hand what no dispatcher does by itself: it looks at the dead
// letters and pending retries of routes, redrives, deletes and hastens them, and
// replays routes. It works on Queen alone, with no dispatcher running, and keeps nothing. Safe for
// concurrent use, also by several processes at once.
type Operator struct {
	queen   OperatorQueen
	accepts func(ctx context.Context, route string) error
	log     *slog.Logger
	large   *large
}

// NewOperator makes an Operator; it calls nobody.
func NewOperator(cfg OperatorConfig) (*Operator, error) {
	if cfg.Queen == nil || cfg.Accepts == nil {
		return nil, errors.New("dispatch: Queen and Accepts are required")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Operator{queen: cfg.Queen, accepts: cfg.Accepts, log: cfg.Logger, large: &large{queen: cfg.Queen}}, nil
}

// DeadLetter is one row of a route's dead letters.
type DeadLetter struct {
	// ID names the row.
	ID       string
	Route    string
	FailedAt time.Time // Queen's clock
	// Reason is why; its Response only where Payload was asked for.
	Reason bridge.DeadReason
	// Delivery is the webhook-id the function saw.
	Delivery string
	Origin   bridge.Origin
	Event    EventSummary
	// Redrivable is false for what somebody else put into the dead queue.
	Redrivable bool
	// Payload is what was pushed to the source queue, byte for byte; only where
	// it was asked for. PayloadError says why it is not there.
	Payload      []byte
	PayloadError string

	partitionID, txn string // the row's address
	delivery         bridge.Delivery
}

// EventSummary is an event without its body and headers.
type EventSummary struct {
	ID          string
	Source      string
	Type        string
	Received    time.Time
	ContentType string
	// Bytes is the size of the body; -1 where only its claim is at hand.
	Bytes int
}

// Selection says which dead letters of a route are meant: all that fit what is
// set.
type Selection struct {
	IDs     []string // of rows
	Classes []bridge.FailureClass
	// Event is the transaction id of the event.
	Event string
	// Since and Until bound FailedAt: from Since, up to but not including
	// Until. Zero: no bound.
	Since, Until time.Time
}

func (s *Selection) fits(l *DeadLetter) bool {
	switch {
	case len(s.IDs) > 0 && !slices.Contains(s.IDs, l.ID),
		len(s.Classes) > 0 && !slices.Contains(s.Classes, l.Reason.Class),
		s.Event != "" && s.Event != l.Origin.TransactionID,
		!s.Since.IsZero() && l.FailedAt.Before(s.Since),
		!s.Until.IsZero() && !l.FailedAt.Before(s.Until):
		return false
	}
	return true
}

// DeadLetterQuery asks for a page of dead letters, newest first.
type DeadLetterQuery struct {
	Selection
	// Limit is the most of a page: 1 to 1000; 0 means 100.
	Limit int
	// Offset is the Next of the page before; 0: the first.
	Offset int
	// WithPayload asks for Payload and for the function's answer in Reason: both
	// may hold what not every reader may see.
	WithPayload bool
}

// DeadLetterPage is what was found. Rows come and go between two pages: one may
// be seen twice.
type DeadLetterPage struct {
	Letters []DeadLetter
	// Next is the Offset of the page behind it; 0: this was the last.
	Next int
}

// Bounds of what one call looks at.
const (
	maxPage  = 1000
	maxLook  = 20_000 // rows looked through for a page
	pageRows = 50     // asked of Queen at a time: a row may hold 12 MB
)

// DeadLetters lists dead letters of a route, whether it exists or not. Where few
// rows fit it ends after 20,000; Next is where to go on.
func (o *Operator) DeadLetters(ctx context.Context, route string, q DeadLetterQuery) (DeadLetterPage, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = 100
	}
	limit = min(limit, maxPage)
	scan := o.scan(route)
	scan.offset = max(q.Offset, 0)
	var page DeadLetterPage
	for looked := 0; ; looked++ {
		l, err := scan.next(ctx)
		switch {
		case err != nil:
			return DeadLetterPage{}, err
		case l == nil:
			return page, nil
		case len(page.Letters) == limit || looked == maxLook:
			page.Next = scan.offset - 1
			return page, nil
		case !q.fits(l):
			continue
		}
		if q.WithPayload {
			o.addPayload(ctx, l)
		} else {
			l.Reason.Response = ""
		}
		l.delivery.Payload = nil
		page.Letters = append(page.Letters, *l)
	}
}

// DeadLetter reads one dead letter with its payload. The error matches
// ErrNoDeadLetter where there is none.
func (o *Operator) DeadLetter(ctx context.Context, route, id string) (DeadLetter, error) {
	page, err := o.DeadLetters(ctx, route, DeadLetterQuery{Selection: Selection{IDs: []string{id}}, Limit: 1, WithPayload: true})
	if err == nil && len(page.Letters) == 0 {
		err = ErrNoDeadLetter
	}
	if err != nil {
		return DeadLetter{}, fmt.Errorf("dead letter %s of route %s: %w", id, route, err)
	}
	return page.Letters[0], nil
}

// addPayload shows the payload of a row, or says why it cannot.
func (o *Operator) addPayload(ctx context.Context, l *DeadLetter) {
	d := &l.delivery
	if d.Payload == nil && d.Claim != nil {
		payload, err := o.large.read(ctx, d)
		if err != nil {
			l.PayloadError = err.Error()
			return
		}
		d.Payload = payload
		l.Event = summary(*d)
	}
	l.Payload = d.Payload
}

// scan walks the dead letters of a route, newest first.
type scan struct {
	o      *Operator
	route  string
	offset int // of the row behind the one in hand
	rows   []queen.DeadLetter
	size   int // of pages
	last   bool
}

func (o *Operator) scan(route string) *scan { return &scan{o: o, route: route, size: pageRows} }

// next is the next row, nil behind the last.
func (s *scan) next(ctx context.Context) (*DeadLetter, error) {
	if len(s.rows) == 0 {
		if s.last {
			return nil, nil
		}
		if err := s.turn(ctx); err != nil || len(s.rows) == 0 {
			return nil, err
		}
	}
	row := s.rows[0]
	s.rows, s.offset = s.rows[1:], s.offset+1
	return deadLetterOf(s.route, &row), nil
}

// turn reads a page; one too large to read is asked for in smaller pieces.
func (s *scan) turn(ctx context.Context) error {
	for {
		rows, err := s.o.queen.DeadLetters(ctx, queen.DeadLetterQuery{Queue: bridge.DeadQueue(s.route), Limit: s.size, Offset: s.offset})
		var bad *queen.BadBodyError
		if errors.As(err, &bad) && bad.TooLarge && s.size > 1 {
			s.size = max(1, s.size/4)
			continue
		}
		if err != nil {
			return fmt.Errorf("list dead letters of route %s: %w", s.route, err)
		}
		s.rows, s.last = rows, len(rows) < s.size
		return nil
	}
}

// removed says that the row in hand is no longer there.
func (s *scan) removed() { s.offset-- }

// deadLetterOf reads a row. What is none of ours is shown as it can be.
func deadLetterOf(route string, row *queen.DeadLetter) *DeadLetter {
	l := &DeadLetter{ID: row.ID, Route: route, FailedAt: row.FailedAt, partitionID: row.PartitionID, txn: row.TransactionID}
	d, ours, err := bridge.DecodeDelivery(row.Data)
	if err != nil || !ours {
		l.Reason = bridge.DeadReason{Route: route, Class: bridge.FailureUndecodable, Error: row.Error}
		l.Origin = bridge.Origin{Queue: row.Queue, Partition: row.Partition, PartitionID: row.PartitionID, TransactionID: row.TransactionID, CreatedAt: row.FailedAt}
		l.Event = EventSummary{ID: row.TransactionID, Received: row.FailedAt, Bytes: len(row.Data)}
		l.delivery = bridge.Delivery{Payload: row.Data}
		return l
	}
	l.delivery, l.Redrivable = d, true
	l.Origin, l.Delivery, l.Event = d.Origin, bridge.DeliveryID(d.Route, d.Origin), summary(d)
	if d.Dead != nil {
		l.Reason = *d.Dead
	}
	return l
}

// summary is what is shown of an event without showing it.
func summary(d bridge.Delivery) EventSummary {
	s := EventSummary{ID: d.Origin.TransactionID, Received: d.Origin.CreatedAt, Bytes: -1}
	if d.Payload == nil && d.Claim != nil {
		return s
	}
	e, err := d.Event()
	if err != nil {
		s.Bytes = len(d.Payload)
		return s
	}
	return EventSummary{ID: e.ID, Source: e.Source, Type: e.Type, Received: e.Received, ContentType: e.ContentType, Bytes: len(e.Body)}
}
