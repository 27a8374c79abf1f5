package devbroker

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// trace is one note about a message (queen-contract.md §7.6). It is not
// checked against a real message.
type trace struct {
	id, txn, part, group, event string
	names                       []string
	data                        []byte // canonical; nil when it did not come
	at                          micros
}

func parseTrace(body []byte) (t *trace, err error) {
	t = &trace{group: queueMode, event: "info"}
	s, err := scan(body)
	if err != nil {
		return t, err
	}
	err = s.object(func(key []byte) (err error) {
		switch string(key) {
		case "transactionId":
			t.txn, err = s.looseText()
		case "partitionId":
			t.part, err = s.looseText()
		case "consumerGroup":
			err = orDefault(s, &t.group)
		case "eventType":
			err = orDefault(s, &t.event)
		case "traceNames":
			err = t.readNames(s)
		case "data":
			var raw []byte
			if raw, err = s.raw(); err == nil {
				t.data, err = canonical(raw)
			}
		default:
			_, err = s.raw()
		}
		return err
	})
	if err == nil {
		err = s.end()
	}
	return t, err
}

// orDefault reads a string and keeps what there was for anything else.
func orDefault(s *scanner, into *string) error {
	text, ok, err := s.loose()
	if ok {
		*into = string(text)
	}
	return err
}

// readNames reads a list of names, or one name.
func (t *trace) readNames(s *scanner) error {
	if s.peek() != '[' {
		name, ok, err := s.loose()
		if ok {
			t.names = []string{string(name)}
		}
		return err
	}
	return s.array(func() error {
		name, ok, err := s.loose()
		if ok {
			t.names = append(t.names, string(name))
		}
		return err
	})
}

// handleTrace is POST /api/v1/traces.
func (b *Broker) handleTrace(w http.ResponseWriter, r *http.Request, _ params) {
	body, ok := b.readBody(w, r)
	if !ok {
		return
	}
	t, err := parseTrace(body.bytes)
	body.free()
	switch {
	case err != nil:
		badBody(w, err)
		return
	case t.txn == "" || t.part == "":
		failure(w, http.StatusBadRequest, "transactionId and partitionId are required")
		return
	case t.data == nil:
		failure(w, http.StatusBadRequest, "data is required")
		return
	}
	if !b.isPartitionID(t.part) {
		failure(w, http.StatusInternalServerError, "trace failed: db error")
		return
	}
	err = b.update(func() {
		t.id, t.at = randomID(), b.now()
		b.st.traces = append(b.st.traces, t)
		b.noteTrace(t)
	})
	if err != nil {
		unavailable(w, err)
		return
	}
	answer(w, http.StatusCreated, new(jsonObject).flag("success", true).str("traceId", t.id).bytes())
}

// handleTraces is GET /api/v1/traces/:partition/:txn.
func (b *Broker) handleTraces(w http.ResponseWriter, _ *http.Request, p params) {
	if !b.isPartitionID(p[0]) {
		failure(w, http.StatusInternalServerError, "traces failed: db error")
		return
	}
	part := strings.ToLower(p[0])
	rows, _, err := b.findTraces(0, maxTraces, func(t *trace) bool { return t.part == part && t.txn == p[1] }, (*Broker).traceJSON)
	if err != nil {
		unavailable(w, err)
		return
	}
	answer(w, http.StatusOK, new(jsonObject).raw("traces", jsonList(rows)).bytes())
}

// maxTraces bounds the traces shown of one message.
const maxTraces = 10_000

// handleTracesByName is GET /api/v1/traces/by-name/:name.
func (b *Broker) handleTracesByName(w http.ResponseWriter, r *http.Request, p params) {
	limit, offset := limitOffset(r, 100)
	rows, total, err := b.findTraces(offset, limit, func(t *trace) bool { return slices.Contains(t.names, p[0]) }, (*Broker).namedTraceJSON)
	if err != nil {
		unavailable(w, err)
		return
	}
	var o jsonObject
	o.num("total", total).raw("traces", jsonList(rows))
	answer(w, http.StatusOK, o.raw("pagination", pagination(limit, offset)).bytes())
}

func pagination(limit, offset int64) string {
	return string(new(jsonObject).num("limit", limit).num("offset", offset).bytes())
}

// findTraces lists a page of the traces wanted, oldest first, and counts all.
func (b *Broker) findTraces(offset, limit int64, want func(*trace) bool, json func(*Broker, *trace) []byte) (rows [][]byte, total int64, err error) {
	err = b.view(func() {
		for _, t := range b.st.traces {
			if !want(t) {
				continue
			}
			if total >= offset && total < offset+limit {
				rows = append(rows, json(b, t))
			}
			total++
		}
	})
	return rows, total, err
}

func (b *Broker) traceJSON(t *trace) []byte {
	var o jsonObject
	o.str("id", t.id).raw("data", string(t.data)).str("worker_id", Engine).str("created_at", t.at.milli())
	return o.str("event_type", t.event).raw("trace_names", jsonStrings(t.names)).str("consumer_group", t.group).bytes()
}

func (b *Broker) namedTraceJSON(t *trace) []byte {
	queue, partition := "", ""
	if p := b.st.parts[strings.ToLower(t.part)]; p != nil {
		queue, partition = p.queue.name, p.name
	}
	var o jsonObject
	o.str("id", t.id).raw("data", string(t.data)).str("worker_id", Engine).str("created_at", t.at.milli())
	o.str("event_type", t.event).strOrNull("queue_name", queue).raw("trace_names", jsonStrings(t.names))
	o.str("partition_id", t.part).str("consumer_group", t.group).strOrNull("partition_name", partition)
	return o.str("transaction_id", t.txn).raw("message_payload", "null").bytes()
}

// named counts the traces of one name.
type named struct {
	name     string
	count    int64
	last     micros
	messages map[string]bool
}

// handleTraceNames is GET /api/v1/traces/names: the names last seen first.
func (b *Broker) handleTraceNames(w http.ResponseWriter, r *http.Request, _ params) {
	limit, offset := limitOffset(r, 50)
	var names []*named
	if err := b.view(func() { names = b.traceNames() }); err != nil {
		unavailable(w, err)
		return
	}
	total := int64(len(names))
	from := min(offset, total)
	var rows [][]byte
	for _, n := range names[from:min(from+limit, total)] {
		var o jsonObject
		o.str("last_seen", n.last.milli()).str("trace_name", n.name).num("trace_count", n.count)
		rows = append(rows, o.num("message_count", int64(len(n.messages))).bytes())
	}
	var o jsonObject
	o.num("total", total).raw("pagination", pagination(limit, offset))
	answer(w, http.StatusOK, o.raw("trace_names", jsonList(rows)).bytes())
}

func (b *Broker) traceNames() []*named {
	seen := map[string]*named{}
	var names []*named
	for _, t := range b.st.traces {
		for _, name := range t.names {
			n := seen[name]
			if n == nil {
				n = &named{name: name, messages: map[string]bool{}}
				seen[name] = n
				names = append(names, n)
			}
			n.count++
			n.last = t.at
			n.messages[t.part+" "+t.txn] = true
		}
	}
	slices.SortFunc(names, func(x, y *named) int { return cmp.Or(cmp.Compare(y.last, x.last), cmp.Compare(x.name, y.name)) })
	return names
}
