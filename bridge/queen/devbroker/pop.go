package devbroker

import (
	"container/list"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// popRequest is one pop (queen-contract.md §4).
type popRequest struct {
	queue      string
	partition  string
	pinned     bool
	discovery  bool
	scope      scope // of a discovery; its group is the pop's
	batch      uint64
	partitions int
	anyWidth   bool // the client sent no partitions
	conflation conflation
	autopilot  bool // the broker chose one of the two, and says so
	wait       bool
	timeout    time.Duration
	lease      int64 // seconds; 0: the queue's
	early      time.Duration
	autoAck    bool
	mode, from string
	arrived    micros
	remote     bool // the client is at the other end of a connection
}

// Defaults of a pop (queen-contract.md §4, 1.x).
const (
	defaultBatch   = 200
	defaultTimeout = 30 * time.Second
	everyPartition = 1 << 31                // partitions ≤ 0: 1.x has no limit then
	autoPartitions = 10                     // what autopilot picks for partitions that were not sent
	autoPause      = 100 * time.Millisecond // what it advises between empty pops
)

// parsePop reads the query of a pop.
func parsePop(q url.Values) (r popRequest, err error) {
	p := queryReader{values: q}
	r.batch = uint64(max(p.number("batch", defaultBatch), 1))
	partitions := int64(1)
	if p.boolean("autopilot") {
		partitions = autoPartitions
		r.autopilot = !q.Has("batch") || !q.Has("partitions")
	}
	r.partitions = int(p.number("partitions", partitions))
	r.anyWidth = !q.Has("partitions")
	if r.partitions <= 0 {
		r.partitions = everyPartition
	}
	r.wait = p.boolean("wait")
	timeout := p.number("timeout", int64(defaultTimeout/time.Millisecond))
	if timeout < 0 {
		p.fail("invalid digit found in string")
	}
	r.timeout = time.Duration(min(max(timeout, 0), 1<<40)) * time.Millisecond
	r.lease = max(p.number("leaseSeconds", 0), 0)
	r.autoAck = p.boolean("autoAck") || p.boolean("commitOnDelivery")
	r.mode, r.from = q.Get("subscriptionMode"), q.Get("subscriptionFrom")
	r.scope = scope{q.Get("namespace"), q.Get("task"), q.Get("consumerGroup")}
	if r.scope.group == "" {
		r.scope.group = queueMode
	}
	r.conflation = conflation{asked: q.Has("conflation"), wanted: p.boolean("conflation")}
	return r, p.err
}

// queryReader reads typed query values and keeps the first mistake.
type queryReader struct {
	values url.Values
	err    error
}

func (p *queryReader) number(name string, otherwise int64) int64 {
	text, ok := p.text(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err == nil:
	case text == "":
		p.fail("cannot parse integer from empty string")
	case errors.Is(err, strconv.ErrRange):
		p.fail("number too large to fit in target type")
	default:
		p.fail("invalid digit found in string")
	}
	return n
}

// text returns a parameter, which may come once.
func (p *queryReader) text(name string) (string, bool) {
	all, ok := p.values[name]
	if len(all) > 1 {
		p.fail("duplicate field `" + name + "`")
	}
	if !ok {
		return "", false
	}
	return all[0], true
}

func (p *queryReader) fail(text string) {
	if p.err == nil {
		p.err = errors.New(text)
	}
}

func (p *queryReader) boolean(name string) bool {
	text, ok := p.text(name)
	if ok && text != "true" && text != "false" {
		p.fail("provided string was not `true` or `false`")
	}
	return text == "true"
}

func (b *Broker) handlePopQueue(w http.ResponseWriter, r *http.Request, p params) {
	b.handlePop(w, r, popRequest{queue: p[0]})
}

func (b *Broker) handlePopPinned(w http.ResponseWriter, r *http.Request, p params) {
	b.handlePop(w, r, popRequest{queue: p[0], partition: p[1], pinned: true})
}

func (b *Broker) handlePopDiscovery(w http.ResponseWriter, r *http.Request, _ params) {
	b.handlePop(w, r, popRequest{discovery: true})
}

func (b *Broker) handlePop(w http.ResponseWriter, r *http.Request, target popRequest) {
	req, err := parsePop(r.URL.Query())
	if err != nil {
		badQuery(w, err)
		return
	}
	req.queue, req.partition, req.pinned, req.discovery = target.queue, target.partition, target.pinned, target.discovery
	if req.discovery && req.scope.namespace == "" && req.scope.task == "" {
		refusePop(w, "namespace or task is required")
		return
	}
	if why := req.refusal(r.URL.Query().Has("consumerGroup")); why != "" {
		refusePop(w, why)
		return
	}
	if b.raft() {
		raftPop(&req)
	}
	req.early, req.remote = faultOf(r).Lease, r.RemoteAddr != ""
	b.pop(w, r, &req)
}

// pop claims, waiting if asked to, and answers.
func (b *Broker) pop(w http.ResponseWriter, r *http.Request, req *popRequest) {
	got, err := b.claimOrWait(r.Context(), req)
	if err != nil {
		unavailable(w, err)
		return
	}
	if len(got.claims) == 0 {
		b.answerNothing(w, req, &got)
		return
	}
	body, err := b.readClaims(req, got)
	switch {
	case err != nil:
		b.giveBack(got)
		unavailable(w, err)
	case r.Context().Err() != nil:
		b.giveBack(got) // nobody is there to receive it
	default:
		answer(w, http.StatusOK, body)
		b.count(func(c *counters) { c.popped += got.messages() })
	}
}

// claimOrWait claims what there is; a long poll waits for something.
func (b *Broker) claimOrWait(ctx context.Context, req *popRequest) (delivery, error) {
	var deadline <-chan time.Time
	if req.wait {
		t := time.NewTimer(req.timeout)
		defer t.Stop()
		deadline = t.C
	}
	w := newWaiter()
	for {
		b.mu.Lock()
		if err := b.usable(); err != nil {
			b.mu.Unlock()
			return delivery{}, closedIsEmpty(err)
		}
		got := b.claim(req)
		parked := len(got.claims) == 0 && req.wait
		if parked {
			b.park(w, req)
		}
		b.mu.Unlock()
		if !parked {
			return got, nil
		}
		select {
		case <-w.wake:
			if !abandoned(ctx, req) {
				continue
			}
			b.handOnAll(req)
			return delivery{}, nil
		case <-deadline:
			b.unpark(w, req)
			return got, nil
		case <-ctx.Done():
		case <-b.ctx.Done():
		}
		b.unpark(w, req)
		return delivery{}, nil
	}
}

// noticeGone is how long a woken pop waits for word that its client has gone.
const noticeGone = time.Millisecond

// abandoned says whether the client of a woken pop has gone. Over a connection
// that news takes a moment to arrive; what is pushed right after a client went
// must not be leased to it.
func abandoned(ctx context.Context, req *popRequest) bool {
	if !req.remote {
		return ctx.Err() != nil
	}
	select {
	case <-ctx.Done():
		return true
	case <-time.After(noticeGone):
		return false
	}
}

// closedIsEmpty lets a pop of a broker that closes end like an empty one.
func closedIsEmpty(err error) error {
	if errors.Is(err, errClosed) {
		return nil
	}
	return err
}

// park puts a pop where the next thing it could claim will find it.
func (b *Broker) park(w *waiter, req *popRequest) { w.park(b.placeOf(req)) }

func (b *Broker) placeOf(req *popRequest) *list.List {
	if req.discovery {
		return parkingPlace(b.st.discovery, req.scope)
	}
	q := b.st.queues[req.queue]
	if q == nil {
		return parkingPlace(b.st.absent, req.queue)
	}
	g := q.group(req.scope.group)
	if !req.pinned {
		return &g.waiting
	}
	if g.pinned == nil {
		g.pinned = map[string]*list.List{}
	}
	return parkingPlace(g.pinned, req.partition)
}

// unpark takes a pop that gives up out of its list, and hands on a wake that
// it will not use.
func (b *Broker) unpark(w *waiter, req *popRequest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if woken := w.leave(); woken {
		b.handOn(req)
	}
	b.tidy(req)
}

// handOnAll is handOn for a pop that was woken and gives up.
func (b *Broker) handOnAll(req *popRequest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handOn(req)
	b.tidy(req)
}

// handOn wakes another pop that could take what this one was woken for.
func (b *Broker) handOn(req *popRequest) {
	for _, q := range b.queuesOf(req) {
		g := q.group(req.scope.group)
		if g == nil {
			continue
		}
		if req.pinned {
			if p := q.parts[req.partition]; p != nil {
				wakeOne(g.pinned[p.name])
			}
		} else if g.ready.len() > 0 {
			wakeOne(&g.waiting)
			wakeOne(b.st.discovery[req.scope])
		}
	}
}

// tidy removes places where nobody is parked any more.
func (b *Broker) tidy(req *popRequest) {
	if l := b.st.discovery[req.scope]; l != nil && l.Len() == 0 {
		delete(b.st.discovery, req.scope)
	}
	if l := b.st.absent[req.queue]; l != nil && l.Len() == 0 {
		delete(b.st.absent, req.queue)
	}
	q := b.st.queues[req.queue]
	if q == nil {
		return
	}
	if g := q.group(req.scope.group); g != nil && req.pinned {
		if l := g.pinned[req.partition]; l != nil && l.Len() == 0 {
			delete(g.pinned, req.partition)
		}
	}
}

// queuesOf lists the queues a pop may read.
func (b *Broker) queuesOf(req *popRequest) []*queue {
	if !req.discovery {
		if q := b.st.queues[req.queue]; q != nil {
			return []*queue{q}
		}
		return nil
	}
	var out []*queue
	for _, q := range b.st.queues {
		if req.scope.matches(q) {
			out = append(out, q)
		}
	}
	return out
}
