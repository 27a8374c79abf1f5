package devbroker

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
)

// found is one message as GET /api/v1/messages/:partition/:txn shows it.
type found struct {
	part    *partition
	message message
	at      micros
	offset  uint64
	dead    *deadLetter
}

// handleMessage is GET /api/v1/messages/:partition/:txn: the newest message
// with that id, or its dead letter.
func (b *Broker) handleMessage(w http.ResponseWriter, _ *http.Request, p params) {
	if !b.isPartitionID(p[0]) {
		failure(w, http.StatusInternalServerError, "resolve failed: db error")
		return
	}
	var body []byte
	var failed error
	err := b.view(func() {
		f, err := b.findMessage(strings.ToLower(p[0]), []byte(p[1]))
		if err == nil {
			body = b.messageJSON(f)
		} else if !errors.Is(err, errGone) {
			failed = err
		}
	})
	switch err = errors.Join(err, failed); {
	case err != nil:
		unavailable(w, err)
	case body == nil:
		failure(w, http.StatusNotFound, "Message not found")
	default:
		answer(w, http.StatusOK, body)
	}
}

func (b *Broker) findMessage(part string, txn []byte) (found, error) {
	p := b.st.parts[part]
	if p == nil {
		return found{}, errGone
	}
	offset, ok := p.ids.newest(b.key.hash(txn))
	if !ok {
		return b.searchMessage(p, txn)
	}
	s, err := b.segmentOf(p, offset)
	if err != nil {
		return found{}, err
	}
	m := s.message(offset)
	if !bytes.Equal(m.txn, txn) {
		return found{}, errGone
	}
	return b.foundAt(p, m, s.at, offset), nil
}

func (b *Broker) foundAt(p *partition, m message, at micros, offset uint64) found {
	f := found{part: p, message: m, at: at, offset: offset}
	for _, d := range b.deadAt(p.id, string(m.txn)) {
		if d.message == m.id {
			f.dead = d
			break
		}
	}
	return f
}

// searchMessage looks through what the id index has forgotten, newest first.
func (b *Broker) searchMessage(p *partition, txn []byte) (f found, err error) {
	err = errGone
	for from := p.first; from < p.ids.base; {
		segs, e := b.storedMessages(p, from, p.ids.base, 4<<20)
		if e != nil || len(segs) == 0 {
			return f, errors.Join(err, e)
		}
		for _, s := range segs {
			for offset := max(s.base, from); offset < s.end(); offset++ {
				if m := s.message(offset); bytes.Equal(m.txn, txn) {
					f, err = b.foundAt(p, m, s.at, offset), nil
				}
			}
			from = max(from, s.end())
		}
	}
	return f, err
}

// messageJSON is a message as 1.3.0 shows it: the payload encoded again, and
// null where that cannot be done.
func (b *Broker) messageJSON(f found) []byte {
	data := shownPayload(f.message)
	q := f.part.queue
	status, _, _ := b.statusOf(f)
	retries, text := int64(0), "null"
	if f.dead != nil {
		retries, text = f.dead.retryCount, string(appendString(nil, f.dead.text))
	}
	var o, config jsonObject
	config.num("leaseTime", q.opts.LeaseTime).num("priority", q.opts.Priority).num("retryDelay", q.opts.RetryDelay)
	config.num("retryLimit", q.opts.RetryLimit).num("ttl", q.opts.TTL)
	o.raw("consumerGroups", b.consumersJSON(f)).str("createdAt", f.at.milli()).raw("data", data).raw("errorMessage", text)
	o.str("id", f.message.id.String()).flag("isEncrypted", false).raw("leaseExpiresAt", "null")
	o.raw("mode", modeJSON([]*partition{f.part}))
	o.str("namespace", q.namespace).str("partition", f.part.name).str("partitionId", f.part.id)
	o.raw("payload", data).raw("producerSub", "null").str("queue", q.name)
	o.raw("queueConfig", string(config.bytes())).str("queuePath", q.name+"/"+f.part.name).num("retryCount", retries)
	o.str("status", status).str("task", q.task).strOrNull("traceId", f.message.trace)
	return o.str("transactionId", string(f.message.txn)).bytes()
}

// shownPayload is a payload encoded again, or null.
func shownPayload(m message) string {
	data, err := canonical(m.payload)
	if err != nil || hasNUL(data) {
		return "null"
	}
	return string(data)
}

// statusOf is the status of a message, and how many of its groups have
// consumed it. Queue mode counts only where there is no other group; where any
// group holds a lease, all it has not consumed is being processed (measured
// 1.3.0).
func (b *Broker) statusOf(f found) (status string, consumed, groups int64) {
	now, held, done := b.now(), false, false
	for _, c := range f.part.cursors {
		if !c.there() {
			continue
		}
		past := f.offset < c.position()
		held = held || c.leased(now)
		if c.group.name == queueMode {
			done = past
			continue
		}
		if groups++; past {
			consumed++
		}
	}
	switch {
	case f.dead != nil:
		status = "dead_letter"
	case groups > 0 && consumed == groups, groups == 0 && done:
		status = "completed"
	case held:
		status = "processing"
	default:
		status = "pending"
	}
	return status, consumed, groups
}

// consumersJSON tells how far each group is with a message.
func (b *Broker) consumersJSON(f found) string {
	now := b.now()
	var rows [][]byte
	for _, c := range f.part.cursors {
		if !c.there() {
			continue
		}
		consumed, lease := f.offset < c.position(), "null"
		if !consumed && c.leased(now) {
			lease = string(appendString(nil, c.until.zoned()))
		}
		var o jsonObject
		o.flag("consumed", consumed).str("group", c.group.name).raw("leaseExpiresAt", lease)
		rows = append(rows, o.str("name", c.group.name).bytes())
	}
	return jsonList(rows)
}
