package devbroker

import (
	"cmp"
	"iter"
	"math/big"
	"slices"
	"strings"
	"time"
)

// kvRow is one stored value.
type kvRow struct {
	value    []byte // canonical JSON
	version  int64
	modified micros
	expires  micros // never: forever
	key      kvKey  // once it is in the state
	slot     int
}

func (r *kvRow) dueAt() micros { return r.expires }
func (r *kvRow) place() *int   { return &r.slot }

func (r *kvRow) stored(key kvKey) kvStored {
	return kvStored{kvKey: key, value: r.value, version: r.version, modified: r.modified, expires: r.expires}
}

// kvResult is the answer for one operation.
type kvResult struct {
	op      *kvOp
	applied bool
	found   bool
	row     *kvRow // what there is, or was
	reason  string // why it was not applied
	rows    []kvShown
	missing []string
	more    bool // truncated
	next    string
}

type kvShown struct {
	key string
	row *kvRow
}

// kvWork is a KV call under way: what it changed, not yet in the state.
type kvWork struct {
	broker  *Broker
	now     micros
	changed map[kvKey]*kvRow // nil: removed
	version int64
}

// kvLost is a required operation that lost; nothing of the call happens.
type kvLost struct {
	index  int
	result kvResult
}

// planKV evaluates a call: ordered by namespace and key as the real broker
// does, reported in the order asked. So a read of many keys sees what the call
// writes in its namespace (measured 1.3.0).
func (b *Broker) planKV(ops []kvOp) (results []kvResult, work *kvWork, lost *kvLost) {
	work = &kvWork{broker: b, now: b.now(), changed: map[kvKey]*kvRow{}, version: b.st.version}
	order := make([]int, len(ops))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Or(strings.Compare(ops[i].namespace, ops[j].namespace), ops[i].compareKeys(&ops[j]))
	})
	results = make([]kvResult, len(ops))
	for _, i := range order {
		results[i] = work.evaluate(&ops[i])
		if ops[i].required && ops[i].writes() && !results[i].applied {
			return nil, nil, &kvLost{i, results[i]}
		}
	}
	return results, work, nil
}

// compareKeys orders what has no one key last.
func (o *kvOp) compareKeys(other *kvOp) int {
	switch {
	case o.key == other.key:
		return 0
	case o.key == "":
		return 1
	case other.key == "":
		return -1
	}
	return strings.Compare(o.key, other.key)
}

// commit puts the changes of a call into the state.
func (w *kvWork) commit() {
	b := w.broker
	b.st.version = w.version
	for key, row := range w.changed {
		b.setKV(key, row)
	}
}

// setKV stores a row, or removes it when it is nil.
func (b *Broker) setKV(key kvKey, row *kvRow) {
	rows := b.st.kv[key.namespace]
	if rows != nil {
		if old, ok := rows.get(key.key); ok {
			b.st.expiring.remove(old)
		}
	}
	if row != nil {
		if row.key = key; row.expires < never {
			b.st.expiring.put(row)
		}
	}
	switch {
	case row != nil && rows == nil:
		rows = &ordered[*kvRow]{}
		b.st.kv[key.namespace] = rows
		rows.set(key.key, row)
	case row != nil:
		rows.set(key.key, row)
	case rows != nil:
		if rows.remove(key.key); rows.len() == 0 {
			delete(b.st.kv, key.namespace)
		}
	}
	b.noteKV(key, row)
}

// row returns the live row of a key, or nil.
func (w *kvWork) row(key kvKey) *kvRow {
	row, changed := w.changed[key]
	if !changed {
		if rows := w.broker.st.kv[key.namespace]; rows != nil {
			row, _ = rows.get(key.key)
		}
	}
	if row == nil || row.expires <= w.now {
		return nil
	}
	return row
}

func (w *kvWork) evaluate(o *kvOp) kvResult {
	r := kvResult{op: o}
	switch o.op {
	case "get":
		r.row = w.row(kvKey{o.namespace, o.key})
		r.found = r.row != nil
	case "getMany":
		w.many(&r)
	case "getPrefix":
		w.prefix(&r)
	case "incr":
		w.incr(&r)
	default:
		w.write(&r)
	}
	return r
}

func (w *kvWork) many(r *kvResult) {
	size := 0
	for _, key := range r.op.keys {
		row := w.row(kvKey{r.op.namespace, key})
		switch {
		case row == nil:
			r.missing = append(r.missing, key)
		case size+len(row.value) > maxKVRead:
			r.more = true
		default:
			size += len(row.value)
			r.rows = append(r.rows, kvShown{key, row})
		}
	}
}

func (w *kvWork) prefix(r *kvResult) {
	limit := r.op.limit
	if limit <= 0 {
		limit = 100
	}
	limit = min(limit, maxPrefixRows)
	size := 0
	for key, row := range w.rows(r.op.namespace, max(r.op.prefix, r.op.after)) {
		if !strings.HasPrefix(key, r.op.prefix) {
			break
		}
		if key == r.op.after || row == nil || row.expires <= w.now {
			continue
		}
		if !r.op.keysOnly {
			size += len(row.value)
		}
		if len(r.rows) == limit || size > maxKVRead {
			r.more, r.next = true, r.rows[len(r.rows)-1].key
			return
		}
		r.rows = append(r.rows, kvShown{key, row})
	}
}

// rows walks a namespace from a key on, with the changes of the call; what it
// removed comes as nil.
func (w *kvWork) rows(ns, from string) iter.Seq2[string, *kvRow] {
	var changed []string
	for key := range w.changed {
		if key.namespace == ns && key.key >= from {
			changed = append(changed, key.key)
		}
	}
	slices.Sort(changed)
	there := w.broker.st.kv[ns]
	if there == nil {
		there = &ordered[*kvRow]{}
	}
	return func(yield func(string, *kvRow) bool) {
		next := changed
		for key, row := range there.from(from) {
			for len(next) > 0 && next[0] <= key {
				if !yield(next[0], w.changed[kvKey{ns, next[0]}]) {
					return
				}
				next = next[1:]
			}
			if _, ok := w.changed[kvKey{ns, key}]; !ok && !yield(key, row) {
				return
			}
		}
		for _, key := range next {
			if !yield(key, w.changed[kvKey{ns, key}]) {
				return
			}
		}
	}
}

// allowed checks expect against the row there is.
func allowed(o *kvOp, row *kvRow) (reason string) {
	expect := o.expect
	if o.op == "putIfAbsent" {
		expect = new(int64)
	}
	switch {
	case o.op == "delete" && row == nil && (expect == nil || *expect > 0):
		return "absent"
	case expect == nil:
		return ""
	case *expect == 0 && row != nil:
		return "exists"
	case *expect > 0 && row == nil:
		return "absent"
	case *expect > 0 && row.version != *expect:
		return "version"
	}
	return ""
}

// write is put, putIfAbsent and delete.
func (w *kvWork) write(r *kvResult) {
	o, key := r.op, kvKey{r.op.namespace, r.op.key}
	r.row = w.row(key)
	if r.reason = allowed(o, r.row); r.reason != "" {
		return
	}
	r.applied = true
	if o.op == "delete" {
		w.changed[key] = nil
		return
	}
	r.row = w.put(key, o.value, w.expiry(o.ttl))
}

// incr adds to a number within bounds, in exact decimals. The time to live
// counts only when the key is made.
func (w *kvWork) incr(r *kvResult) {
	o, key := r.op, kvKey{r.op.namespace, r.op.key}
	r.row = w.row(key)
	sum, expires := new(big.Rat), w.expiry(o.ttl)
	if r.row != nil {
		var ok bool
		if sum, ok = decimal(r.row.value); !ok {
			r.reason = "type"
			return
		}
		expires = r.row.expires
	}
	sum.Add(sum, o.delta)
	value, err := decimalJSON(sum)
	if err != nil || o.most != nil && sum.Cmp(o.most) > 0 || o.least != nil && sum.Cmp(o.least) < 0 {
		r.reason = "limit"
		return
	}
	r.applied = true
	r.row = w.put(key, value, expires)
}

func (w *kvWork) expiry(ttl time.Duration) micros {
	if ttl <= 0 {
		return never
	}
	return w.now.add(ttl)
}

func (w *kvWork) put(key kvKey, value []byte, expires micros) *kvRow {
	w.version++
	row := &kvRow{value: value, version: w.version, modified: w.now, expires: expires}
	w.changed[key] = row
	return row
}

// expireKV removes a bounded number of rows whose time is over; until then
// they are treated as gone.
func (b *Broker) expireKV() {
	now := b.now()
	for range expireRound {
		row, ok := b.st.expiring.first()
		if !ok || row.expires > now {
			return
		}
		b.setKV(row.key, nil)
	}
}

// expireRound bounds the rows removed at once.
const expireRound = 4096
