package dispatch

import (
	"strings"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// Bounds of what a dispatcher remembers of its attempts: about 1 MiB beside
// texts that the events hold already.
const (
	maxRecent     = 4096
	maxRecentText = 512 // bytes of each text
)

// OutcomeDeadLetter is the outcome of the record of a dead letter, written once
// the dead letter is stored. An attempt that made it has a record of its own,
// with the outcome dead; an event that cannot be read, filtered or transformed,
// or that expired while it was held, has no other.
const OutcomeDeadLetter bridge.OutcomeKind = "dead_letter"

// DeliveryRecord is one attempt, or one dead letter. It holds no body, no
// header and no secret; its texts are at most 512 bytes.
type DeliveryRecord struct {
	// Seq grows with each record, also over a restart of the process on a clock
	// that does not go back: it begins at the microseconds of 1970.
	Seq    int64
	Time   time.Time // when the outcome was known
	Route  string
	Target string
	// Delivery is the webhook-id that the function saw.
	Delivery string
	// Event is the transaction id; it was first in Queue, in Partition.
	Event, Queue, Partition string
	Hop                     int
	// Attempt is the number of the call, 1 for the first; of a dead letter, how
	// many there were.
	Attempt int
	// Outcome is delivered, retry, hold, dead or OutcomeDeadLetter.
	Outcome bridge.OutcomeKind
	// Status of the answer; 0: there was none.
	Status int
	// Class and Error say why it was not delivered.
	Class bridge.FailureClass
	Error string
	// Elapsed is how long the call took; 0 for a dead letter.
	Elapsed time.Duration
	// Delay is when it is tried again, counted from Time; of retry and hold.
	Delay time.Duration
	// Detached says that the call outlasted its lease, and that a retry was
	// scheduled before its outcome was known.
	Detached bool
	// Batch is how many events the call carried; 0 for a dead letter.
	Batch int
}

// DeliveryQuery chooses records: those that fit all that is set.
type DeliveryQuery struct {
	Route, Target, Event, Delivery string
	Outcome                        bridge.OutcomeKind
	// Since is the earliest time.
	Since time.Time
	// After and Before are numbers of records; both are exclusive. 0: no bound.
	After, Before int64
	// Limit is the most records. 0 means 100.
	Limit int
}

// Deliveries lists the recent attempts and dead letters of this process, the
// newest first. It knows the last 4096, and those of no other process: the log
// and the metrics have all. Filtered events are in neither.
func (d *Dispatcher) Deliveries(q DeliveryQuery) []DeliveryRecord {
	if q.Limit <= 0 {
		q.Limit = 100
	}
	return d.recent.list(q)
}

// recent is a ring of records.
type recent struct {
	first int64 // number of the first record: set before use

	mu   sync.Mutex
	n    int64 // records written so far
	ring []DeliveryRecord
}

func newRecent(now time.Time) *recent { return &recent{first: now.UnixMicro()} }

// add takes a record. Its delivery id is made when somebody asks, as long as
// all it is made of is kept: a hash for each attempt would cost more than all
// the rest.
func (l *recent) add(r DeliveryRecord) {
	if max(len(r.Event), len(r.Queue), len(r.Partition)) > maxRecentText {
		r.Delivery = r.deliveryID()
		r.Event, r.Queue, r.Partition = bounded(r.Event), bounded(r.Queue), bounded(r.Partition)
	}
	r.Error = bounded(r.Error)
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Seq = l.first + l.n
	if len(l.ring) < maxRecent {
		l.ring = append(l.ring, r)
	} else {
		l.ring[l.n%maxRecent] = r
	}
	l.n++
}

func (r *DeliveryRecord) deliveryID() string {
	if r.Delivery != "" {
		return r.Delivery
	}
	return bridge.DeliveryID(r.Route, bridge.Origin{Queue: r.Queue, Partition: r.Partition, TransactionID: r.Event})
}

func bounded(text string) string {
	if len(text) <= maxRecentText {
		return text
	}
	return strings.ToValidUTF8(strings.Clone(text[:maxRecentText]), "")
}

// list looks from the newest back. The lock is held for a bounded time: what
// costs, the delivery ids, is done on copies.
func (l *recent) list(q DeliveryQuery) []DeliveryRecord {
	found := l.matching(q)
	out := found[:0]
	for _, r := range found {
		r.Delivery = r.deliveryID()
		if q.Delivery != "" && q.Delivery != r.Delivery {
			continue
		}
		if out = append(out, r); len(out) == q.Limit {
			break
		}
	}
	return out
}

// matching are the records that fit all but the delivery id.
func (l *recent) matching(q DeliveryQuery) (found []DeliveryRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range len(l.ring) {
		r := &l.ring[(l.n-1-int64(i))%maxRecent]
		if q.After > 0 && r.Seq <= q.After || q.Delivery == "" && len(found) == q.Limit {
			break
		}
		if q.fits(r) {
			found = append(found, *r)
		}
	}
	return found
}

func (q *DeliveryQuery) fits(r *DeliveryRecord) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	return is(q.Route, r.Route) && is(q.Target, r.Target) && is(bounded(q.Event), r.Event) && is(string(q.Outcome), string(r.Outcome)) &&
		!r.Time.Before(q.Since) && (q.Before <= 0 || r.Seq < q.Before)
}
