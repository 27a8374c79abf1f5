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
	if _, ok := parseID(p[0]); !ok {
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
	data, err := canonical(f.message.payload)
	if err != nil || hasNUL(data) {
		data = []byte("null")
	}
	q := f.part.queue
	status, groups, mode := b.consumersJSON(f)
	retries, text := int64(0), "null"
	if f.dead != nil {
		status, retries, text = "dead_letter", f.dead.retryCount, string(appendString(nil, f.dead.text))
	}
	var o, config jsonObject
	config.num("leaseTime", q.opts.LeaseTime).num("priority", q.opts.Priority).num("retryDelay", q.opts.RetryDelay)
	config.num("retryLimit", q.opts.RetryLimit).num("ttl", q.opts.TTL)
	o.raw("consumerGroups", groups).str("createdAt", f.at.milli()).raw("data", string(data)).raw("errorMessage", text)
	o.str("id", f.message.id.String()).flag("isEncrypted", false).raw("leaseExpiresAt", "null").raw("mode", mode)
	o.str("namespace", q.namespace).str("partition", f.part.name).str("partitionId", f.part.id)
	o.raw("payload", string(data)).raw("producerSub", "null").str("queue", q.name)
	o.raw("queueConfig", string(config.bytes())).str("queuePath", q.name+"/"+f.part.name).num("retryCount", retries)
	o.str("status", status).str("task", q.task).strOrNull("traceId", f.message.trace)
	return o.str("transactionId", string(f.message.txn)).bytes()
}

// consumersJSON tells how far each group is with a message.
func (b *Broker) consumersJSON(f found) (status, groups, mode string) {
	now := b.now()
	status = "completed"
	bus, queueModeSeen := int64(0), false
	var rows [][]byte
	for _, c := range f.part.cursors {
		consumed, lease := f.offset < c.position(), "null"
		if !consumed {
			if status == "completed" {
				status = "pending"
			}
			if c.leased(now) && f.offset < c.leaseEnd {
				status, lease = "processing", string(appendString(nil, c.until.milli()))
			}
		}
		if c.group.name == queueMode {
			queueModeSeen = true
		} else {
			bus++
		}
		var o jsonObject
		o.flag("consumed", consumed).str("group", c.group.name).raw("leaseExpiresAt", lease)
		rows = append(rows, o.str("name", c.group.name).bytes())
	}
	if len(rows) == 0 {
		status = "pending"
	}
	kind := "bus"
	if queueModeSeen && bus == 0 {
		kind = "queue"
	}
	var o jsonObject
	o.num("busGroupsCount", bus).flag("hasQueueMode", queueModeSeen).str("type", kind)
	return status, jsonList(rows), string(o.bytes())
}
