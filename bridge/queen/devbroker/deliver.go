package devbroker

import (
	"net/http"
	"strconv"
)

// maxAnswer is about the most message bytes one pop reads back from the store;
// what does not fit stays for the next pop. A single message is always given.
const maxAnswer = 48 << 20

// readClaims writes the answer of a pop, reading from the store what is not in
// memory, and waits until all of it is durable.
func (b *Broker) readClaims(req *popRequest, d delivery) ([]byte, error) {
	w := popWriter{delivery: &d}
	w.begin()
	budget := maxAnswer
	for i := range d.claims {
		cl := &d.claims[i]
		if err := cl.commit.wait(); err != nil {
			return nil, err
		}
		if budget <= 0 && i > 0 {
			b.shorten(d.lease, cl, cl.from)
			continue
		}
		to, err := b.writeClaim(&w, cl, &budget)
		if err != nil {
			return nil, err
		}
		if to < cl.to {
			b.shorten(d.lease, cl, to)
		}
	}
	return w.finish(req), nil
}

// writeClaim writes the messages of one claim and returns where it had to stop.
func (b *Broker) writeClaim(w *popWriter, cl *claim, budget *int) (to uint64, err error) {
	w.claim(cl)
	from := cl.from
	start := cl.to
	if len(cl.cached) > 0 {
		start = cl.cached[0].base
	}
	for from < min(start, cl.to) && *budget > 0 {
		segs, err := b.storedMessages(cl.cursor.part, from, min(start, cl.to), *budget)
		if err != nil {
			return 0, err
		}
		if len(segs) == 0 {
			break // retention took it meanwhile
		}
		for _, s := range segs {
			*budget -= len(s.blob)
			from = w.segment(s, from, cl.to)
		}
	}
	if from < min(start, cl.to) && *budget <= 0 {
		return from, nil
	}
	for _, s := range cl.cached {
		if *budget <= 0 {
			return max(from, s.base), nil
		}
		*budget -= len(s.blob)
		from = w.segment(s, max(from, s.base), cl.to)
	}
	return cl.to, nil
}

// shorten gives back the end of a claim.
func (b *Broker) shorten(lease string, cl *claim, to uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := cl.cursor
	if b.usable() != nil || lease == "" || c.lease != lease || b.st.parts[c.part.id] != c.part {
		return
	}
	if to <= cl.from {
		b.dropLease(c)
		b.release(c, b.now())
	} else {
		c.leaseEnd = to
	}
	b.noteLease(c)
}

// popWriter writes the body of a pop.
type popWriter struct {
	delivery *delivery
	buf      []byte
	suffix   []byte // the end of each message of the claim being written
	any      bool
	claims   int64
}

func (w *popWriter) begin() {
	d := w.delivery
	p := d.claims[0].cursor.part
	w.buf = make([]byte, 0, w.size())
	w.buf = appendString(append(w.buf, `{"success":true,"queue":`...), d.queue)
	w.buf = appendString(append(w.buf, `,"partition":`...), p.name)
	w.buf = appendString(append(w.buf, `,"partitionId":`...), p.id)
	w.buf = appendString(append(w.buf, `,"leaseId":`...), d.lease)
	w.buf = appendString(append(w.buf, `,"consumerGroup":`...), d.group)
	w.buf = append(w.buf, `,"messages":[`...)
}

// size guesses the length of the body, to allocate once.
func (w *popWriter) size() int {
	n := 512
	for _, cl := range w.delivery.claims {
		n += int(cl.to-cl.from) * 420
		for _, s := range cl.cached {
			n += len(s.blob)
		}
	}
	return min(n, 8<<20)
}

func (w *popWriter) claim(cl *claim) {
	w.claims++
	p := cl.cursor.part
	s := appendString(append(w.suffix[:0], `,"partitionId":`...), p.id)
	s = appendString(append(s, `,"partition":`...), p.name)
	s = appendString(append(s, `,"leaseId":`...), w.delivery.lease)
	s = appendString(append(s, `,"consumerGroup":`...), w.delivery.group)
	s = strconv.AppendInt(append(s, `,"deliveryAttempt":`...), cl.attempt, 10)
	w.suffix = append(s, `,"offset":`...)
}

// segment writes the messages of a segment in [from, to) and returns the
// offset after the last.
func (w *popWriter) segment(s *segment, from, to uint64) uint64 {
	to = min(to, s.end())
	stamp := s.at.stamp()
	for offset := max(from, s.base); offset < to; offset++ {
		w.message(s.message(offset), stamp, offset)
	}
	return max(from, to)
}

func (w *popWriter) message(m message, stamp string, offset uint64) {
	if w.any {
		w.buf = append(w.buf, ',')
	}
	w.any = true
	w.buf = m.id.append(append(w.buf, `{"id":"`...))
	w.buf = appendString(append(w.buf, `","transactionId":`...), m.txn)
	w.buf = append(w.buf, `,"traceId":`...)
	if m.trace == "" {
		w.buf = append(w.buf, "null"...)
	} else {
		w.buf = appendString(w.buf, m.trace)
	}
	// The payload goes out as it came in, even a timer's that is no JSON.
	w.buf = append(append(w.buf, `,"data":`...), m.payload...)
	w.buf = append(append(w.buf, `,"producerSub":null,"createdAt":"`...), stamp...)
	w.buf = append(append(w.buf, '"'), w.suffix...)
	w.buf = append(strconv.AppendUint(w.buf, offset, 10), '}')
}

func (w *popWriter) finish(req *popRequest) []byte {
	w.buf = append(w.buf, `],"partitionsClaimed":`...)
	w.buf = strconv.AppendInt(w.buf, w.claims, 10)
	w.buf = w.delivery.policy.append(w.buf)
	if req.autopilot && !w.delivery.policy.on {
		var o jsonObject
		o.num("partitions", int64(req.partitions)).num("batch", count(req.batch)).num("waitMs", autoPause.Milliseconds())
		w.buf = append(append(w.buf, `,"autopilot":`...), o.bytes()...)
	}
	return append(w.buf, '}')
}

// handleExtend is POST /api/v1/lease/:id/extend (queen-contract.md §6). A body
// that is missing or cannot be read means 60 seconds.
func (b *Broker) handleExtend(w http.ResponseWriter, r *http.Request, p params) {
	body, ok := b.readBody(w, r)
	if !ok {
		return
	}
	seconds := extendSeconds(body.bytes)
	body.free()
	var renewed int
	var until micros
	err := b.update(func() { renewed, until = b.extend(p[0], seconds) })
	if err != nil {
		unavailable(w, err)
		return
	}
	at := "null"
	if renewed > 0 {
		at = string(appendString(nil, until.stamp()))
	}
	var o jsonObject
	o.str("leaseId", p[0]).flag("success", renewed > 0).num("renewed", int64(renewed))
	answer(w, http.StatusOK, o.raw("newExpiresAt", at).raw("expiresAt", at).raw("lease_expires_at", at).bytes())
}

func extendSeconds(body []byte) int64 {
	seconds := int64(60)
	s, err := scan(body)
	if err != nil {
		return seconds
	}
	_ = s.object(func(key []byte) error { // what cannot be read leaves the default
		if string(key) != "seconds" {
			_, err := s.raw()
			return err
		}
		n, err := s.integer()
		if err == nil {
			seconds = n
		}
		return err
	})
	return max(seconds, 1)
}

// extend lengthens every partition that is still held under a lease, and never
// shortens one. It returns how many there are and the earliest end.
func (b *Broker) extend(lease string, seconds int64) (renewed int, until micros) {
	now := b.now()
	until = never
	for _, c := range b.st.leases[lease] {
		if !c.leased(now) {
			continue
		}
		renewed++
		c.until = max(c.until, expiry(now, seconds))
		c.local = false // an extension may be somebody's backoff: it outlives the process
		until = min(until, c.until)
		b.noteCursor(c)
	}
	return renewed, until
}
