package devbroker

import (
	"net/http"
	"slices"
	"strings"
)

// trace is one note about a message (queen-contract.md §7.6). It is not
// checked against a real message.
type trace struct {
	id, txn, part, group, event string
	names                       []string
	data                        []byte
	at                          micros
	seen                        [3]bool // transactionId, partitionId, data
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
			t.txn, err = s.optional()
			t.seen[0] = t.txn != ""
		case "partitionId":
			t.part, err = s.optional()
			t.seen[1] = t.part != ""
		case "consumerGroup":
			err = orDefault(s, &t.group)
		case "eventType":
			err = orDefault(s, &t.event)
		case "traceNames":
			err = t.readNames(s)
		case "data":
			var raw []byte
			raw, err = s.raw()
			t.data = slices.Clone(raw)
			t.seen[2] = true
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

// orDefault reads a string and keeps what there was for null.
func orDefault(s *scanner, into *string) error {
	text, err := s.optional()
	if text != "" {
		*into = text
	}
	return err
}

// readNames reads a list of names, one name, or null.
func (t *trace) readNames(s *scanner) error {
	if s.peek() == '"' || s.peek() == 'n' {
		name, err := s.optional()
		if name != "" {
			t.names = []string{name}
		}
		return err
	}
	return s.array(func() error {
		name, err := s.optional()
		t.names = append(t.names, name)
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
	if err != nil {
		badBody(w, err)
		return
	}
	if t.seen != [3]bool{true, true, true} {
		failure(w, http.StatusBadRequest, "transactionId, partitionId and data are required")
		return
	}
	if _, ok := parseID(t.part); !ok {
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

func (b *Broker) handleTraces(w http.ResponseWriter, _ *http.Request, p params) {
	b.listTraces(w, func(t *trace) bool { return t.part == strings.ToLower(p[0]) && t.txn == p[1] })
}

func (b *Broker) handleTracesByName(w http.ResponseWriter, _ *http.Request, p params) {
	b.listTraces(w, func(t *trace) bool { return slices.Contains(t.names, p[0]) })
}

func (b *Broker) listTraces(w http.ResponseWriter, want func(*trace) bool) {
	var rows [][]byte
	err := b.view(func() {
		for _, t := range slices.Backward(b.st.traces) {
			if want(t) {
				rows = append(rows, b.traceJSON(t))
			}
		}
	})
	if err != nil {
		unavailable(w, err)
		return
	}
	var o jsonObject
	answer(w, http.StatusOK, o.raw("traces", jsonList(rows)).num("total", int64(len(rows))).bytes())
}

func (b *Broker) traceJSON(t *trace) []byte {
	queue, partition := "", ""
	if p := b.st.parts[t.part]; p != nil {
		queue, partition = p.queue.name, p.name
	}
	var o jsonObject
	o.str("id", t.id).raw("data", string(t.data)).str("event_type", t.event).raw("trace_names", jsonStrings(t.names))
	o.str("created_at", t.at.milli()).str("transaction_id", t.txn).str("partition_id", t.part)
	o.strOrNull("partition_name", partition).strOrNull("queue_name", queue)
	return o.str("consumer_group", t.group).bytes()
}

func (b *Broker) handleTraceNames(w http.ResponseWriter, _ *http.Request, _ params) {
	counts := map[string]int64{}
	err := b.view(func() {
		for _, t := range b.st.traces {
			for _, name := range t.names {
				counts[name]++
			}
		}
	})
	if err != nil {
		unavailable(w, err)
		return
	}
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.Sort(names)
	rows := make([][]byte, len(names))
	for i, name := range names {
		rows[i] = new(jsonObject).str("trace_name", name).num("trace_count", counts[name]).bytes()
	}
	var o jsonObject
	answer(w, http.StatusOK, o.raw("traces", jsonList(rows)).num("total", int64(len(rows))).bytes())
}
