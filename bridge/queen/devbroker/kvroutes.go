package devbroker

import (
	"net/http"
	"strconv"
)

// json is a result with its members in the order 1.3.0 has them. A rider of a
// transaction (opIndex ≥ 0) also says so.
func (r *kvResult) json(index, opIndex int) []byte {
	var o jsonObject
	if r.op.writes() {
		o.flag("applied", r.applied)
	}
	if r.op.op == "get" && r.found {
		o.raw("expiresAt", r.row.expiry())
	}
	if r.op.op == "get" {
		o.flag("found", r.found)
	}
	o.num("index", int64(index))
	switch r.op.op {
	case "getMany":
		o.raw("missing", jsonStrings(r.missing))
	case "getPrefix":
		o.strOrNull("nextAfter", r.next)
	default:
		o.str("key", r.op.key)
	}
	o.str("op", r.op.op)
	if opIndex >= 0 {
		o.num("opIndex", int64(opIndex))
	}
	r.tail(&o, opIndex >= 0)
	return o.bytes()
}

// tail writes the members after opIndex.
func (r *kvResult) tail(o *jsonObject, rider bool) {
	if r.reason != "" {
		o.str("reason", r.reason)
	}
	if r.op.op == "getMany" || r.op.op == "getPrefix" {
		o.raw("rows", jsonList(r.shown())).flag("truncated", r.more)
	}
	if rider {
		o.str("type", "kv")
	}
	if r.op.op == "get" && r.found {
		o.str("updatedAt", r.row.modified.zoned())
	}
	if r.op.writes() || r.found {
		value, version := r.shownValue()
		o.raw("value", value).num("version", version)
	}
}

// shown is the value and version of a row; null and 0 for none (measured).
func (r *kvRow) shown() (value string, version int64) {
	if r == nil {
		return "null", 0
	}
	return string(r.value), r.version
}

// shownValue is the value and version a result shows: of an incr that lost, a
// number in any case (measured 1.3.0).
func (r *kvResult) shownValue() (value string, version int64) {
	value, version = r.row.shown()
	if r.op.op == "incr" && (r.row == nil || r.reason == "type") {
		value = "0"
	}
	return value, version
}

func (r *kvRow) expiry() string {
	if r.expires == never {
		return "null"
	}
	return string(appendString(nil, r.expires.zoned()))
}

func (r *kvResult) shown() [][]byte {
	out := make([][]byte, len(r.rows))
	for i, s := range r.rows {
		var o jsonObject
		o.raw("expiresAt", s.row.expiry()).str("key", s.key).str("updatedAt", s.row.modified.zoned())
		if !r.op.keysOnly {
			o.raw("value", string(s.row.value))
		}
		out[i] = o.num("version", s.row.version).bytes()
	}
	return out
}

// handleKV is POST /api/v1/kv.
func (b *Broker) handleKV(w http.ResponseWriter, r *http.Request, _ params) {
	body, ok := b.readBody(w, r)
	if !ok {
		return
	}
	defer body.free()
	ops, err := parseKVBody(body.bytes)
	if err != nil {
		refuseKV(w, err)
		return
	}
	results, ok := b.runKV(w, ops)
	if !ok {
		return
	}
	rows := make([][]byte, len(results))
	for i := range results {
		rows[i] = results[i].json(i, -1)
	}
	answer(w, http.StatusOK, new(jsonObject).raw("results", jsonList(rows)).bytes())
}

func parseKVBody(body []byte) (ops []kvOp, err error) {
	s, err := scan(body)
	if err != nil {
		return nil, err
	}
	ops, ok, err := operationsOf(s, parseKVOps)
	if err == nil && !ok {
		err = kvBad("kv_bad_body", "%s", needsArray)
	}
	return ops, err
}

const needsArray = `body must be an array of operations, or {"operations":[...]}`

// operationsOf reads the body of a KV or timer call: an array, or an object
// that holds one.
func operationsOf[T any](s *scanner, parse func(*scanner) ([]T, error)) (ops []T, ok bool, err error) {
	switch s.peek() {
	case '[':
		ok = true
		ops, err = parse(s)
	case '{':
		err = s.object(func(key []byte) (err error) {
			if string(key) == "operations" && s.peek() == '[' {
				ok = true
				ops, err = parse(s)
			} else {
				_, err = s.raw()
			}
			return err
		})
	default:
		_, err = s.raw()
	}
	if err == nil {
		err = s.end()
	}
	return ops, ok, err
}

// runKV checks, limits and carries out a call of its own, or answers why not.
func (b *Broker) runKV(w http.ResponseWriter, ops []kvOp) (results []kvResult, ok bool) {
	if err := checkKV(ops, b.namespaces, false); err != nil {
		refuseKV(w, err)
		return nil, false
	}
	writes, reads := kvCosts(ops)
	if !allowWrites(b.writes, writes) || !allowWrites(b.reads, reads) {
		rateLimited(w)
		return nil, false
	}
	var lost *kvLost
	err := b.update(func() {
		var work *kvWork
		if results, work, lost = b.planKV(ops); lost == nil {
			work.commit()
		}
	})
	switch {
	case err != nil:
		unavailable(w, err)
	case lost != nil:
		answer(w, http.StatusOK, lost.json())
	default:
		return results, true
	}
	return nil, false
}

func (l *kvLost) json() []byte {
	value, version := l.result.shownValue()
	var o jsonObject
	o.num("failedIndex", int64(l.index)).str("kvReason", l.result.reason).flag("ok", false)
	return o.str("reason", "kv_precondition").raw("value", value).num("version", version).bytes()
}

// handleKVGet is GET /api/v1/kv/:ns/*key.
func (b *Broker) handleKVGet(w http.ResponseWriter, r *http.Request, p params) {
	b.oneKV(w, r, kvOp{op: "get", namespace: p[0], key: p[1]})
}

// handleKVPut is PUT /api/v1/kv/:ns/*key.
func (b *Broker) handleKVPut(w http.ResponseWriter, r *http.Request, p params) {
	b.oneKVWithBody(w, r, kvOp{op: "put", namespace: p[0], key: p[1]})
}

// handleKVDelete is DELETE /api/v1/kv/:ns/*key.
func (b *Broker) handleKVDelete(w http.ResponseWriter, r *http.Request, p params) {
	b.oneKVWithBody(w, r, kvOp{op: "delete", namespace: p[0], key: p[1]})
}

func (b *Broker) oneKVWithBody(w http.ResponseWriter, r *http.Request, op kvOp) {
	body, ok := b.readBody(w, r)
	if !ok {
		return
	}
	defer body.free()
	if len(body.bytes) > 0 {
		if err := op.readBody(body.bytes); err != nil {
			refuseKV(w, err)
			return
		}
	}
	b.oneKV(w, r, op)
}

// readBody reads the members of an operation whose op, namespace and key stand
// in the path.
func (o *kvOp) readBody(body []byte) error {
	s, err := scan(body)
	if err != nil {
		return err
	}
	err = s.object(func(key []byte) error {
		switch name := string(key); name {
		case "op", "ns", "key":
			return kvBad("kv_field_in_path", "`%s` is taken from the URL on this route and must not be in the body", name)
		default:
			return o.field(s, name, 0)
		}
	})
	if err != nil {
		return err
	}
	return s.end()
}

func (b *Broker) oneKV(w http.ResponseWriter, r *http.Request, op kvOp) {
	if r.URL.RawQuery != "" {
		refuseKV(w, kvBad("kv_no_query_string", "this route takes no query string"))
		return
	}
	results, ok := b.runKV(w, []kvOp{op})
	if !ok {
		return
	}
	if res := results[0]; op.op == "get" && res.found {
		w.Header().Set("ETag", strconv.Quote(strconv.FormatInt(res.row.version, 10)))
	}
	answer(w, http.StatusOK, results[0].json(0, -1))
}
