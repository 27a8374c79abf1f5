package devbroker

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// writeStatements are the statements of a commit, by name.
var writeStatements = map[string]string{
	"version":    `UPDATE meta SET value = ? WHERE key = 'kv_version'`,
	"queue":      `INSERT OR REPLACE INTO queue VALUES (?, ?, ?, ?, ?, ?, ?)`,
	"part":       `INSERT OR REPLACE INTO part VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
	"oldbodies":  `DELETE FROM body WHERE id IN (SELECT body FROM segment WHERE part = ? AND base + count <= ?)`,
	"oldsegs":    `DELETE FROM segment WHERE part = ? AND base + count <= ?`,
	"group":      `INSERT OR REPLACE INTO grp VALUES (?, ?, ?, ?, ?)`,
	"cursor":     `INSERT OR REPLACE INTO cursor VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	"segment":    `INSERT INTO segment VALUES (?, ?, ?, ?, ?)`,
	"body":       `INSERT INTO body VALUES (?, ?)`,
	"timer":      `INSERT OR REPLACE INTO timer VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	"timerbody":  `INSERT OR REPLACE INTO timerbody VALUES (?, ?)`,
	"notimer":    `DELETE FROM timer WHERE id = ?`,
	"notimerb":   `DELETE FROM timerbody WHERE id = ?`,
	"kv":         `INSERT OR REPLACE INTO kv VALUES (?, ?, ?, ?, ?, ?)`,
	"nokv":       `DELETE FROM kv WHERE ns = ? AND key = ?`,
	"dead":       `INSERT OR REPLACE INTO dead VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	"nodead":     `DELETE FROM dead WHERE id = ?`,
	"trace":      `INSERT INTO trace VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
	"nogroup":    `DELETE FROM grp WHERE queue = ? AND name = ?`,
	"nocursors":  `DELETE FROM cursor WHERE grp = ? AND part IN (SELECT num FROM part WHERE queue = ?)`,
	"noqbodies":  `DELETE FROM body WHERE id IN (SELECT body FROM segment WHERE part IN (SELECT num FROM part WHERE queue = ?))`,
	"noqsegs":    `DELETE FROM segment WHERE part IN (SELECT num FROM part WHERE queue = ?)`,
	"noqcursors": `DELETE FROM cursor WHERE part IN (SELECT num FROM part WHERE queue = ?)`,
	"noqparts":   `DELETE FROM part WHERE queue = ?`,
	"noqgroups":  `DELETE FROM grp WHERE queue = ?`,
	"noqueue":    `DELETE FROM queue WHERE num = ?`,
}

// commit writes one batch in one SQLite transaction. It cannot be cancelled.
func (s *sqliteStore) commit(c *changes) error {
	s.mu.Lock()
	w := &writing{store: s, ctx: context.Background()}
	err := w.all(c)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case s.written <- w.bytes:
	default: // the checkpointer is busy: the next commit counts for both
		s.carry(w.bytes)
	}
	return nil
}

// carry adds to what waits for the checkpointer. Only commit sends, so the one
// slot is either taken by the checkpointer meanwhile or filled here.
func (s *sqliteStore) carry(n int) {
	select {
	case old := <-s.written:
		n += old
	default:
	}
	select {
	case s.written <- n:
	default:
	}
}

// writing is one commit under way. The first error sticks.
type writing struct {
	store *sqliteStore
	ctx   context.Context
	err   error
	bytes int
}

func (w *writing) all(c *changes) error {
	if _, err := w.store.write.ExecContext(w.ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	w.groupRemovals(c) // first: the same batch may hold a new group of that name
	w.rows(c)
	w.messages(c.segments)
	w.timers(c)
	w.removals(c)
	if len(c.kv) > 0 || w.bytes == 0 { // a commit of nothing tests the disk
		w.do("version", c.version)
	}
	if w.err == nil {
		_, w.err = w.store.write.ExecContext(w.ctx, `COMMIT`)
	}
	if w.err == nil {
		return nil
	}
	_, err := w.store.write.ExecContext(w.ctx, `ROLLBACK`)
	if err != nil { // SQLite rolls back by itself when the disk is full
		w.store.log.Debug("rollback", "err", err)
	}
	return w.err
}

func (w *writing) do(statement string, args ...any) {
	if w.err != nil {
		return
	}
	w.bytes += 256
	if _, err := w.store.exec[statement].ExecContext(w.ctx, args...); err != nil {
		w.err = fmt.Errorf("store %s: %w", statement, err)
	}
}

func (w *writing) rows(c *changes) {
	for _, q := range c.queues {
		opts, err := json.Marshal(q.opts)
		w.err = errors.Join(w.err, err)
		w.do("queue", q.num, q.id, q.name, q.namespace, q.task, int64(q.created), string(opts))
	}
	for _, p := range c.parts {
		w.do("part", p.num, p.queue, p.id, p.name, int64(p.created), signed(p.first), signed(p.next), signed(p.known))
		if p.first > 0 {
			w.do("oldbodies", p.num, signed(p.first))
			w.do("oldsegs", p.num, signed(p.first))
		}
	}
	for _, g := range c.groups {
		w.do("group", g.queue, g.name, g.all, int64(g.since), int64(g.created))
	}
	for i := range c.cursors {
		r := &c.cursors[i]
		w.do("cursor", r.part, r.group, signed(r.next), r.lease, int64(r.until), signed(r.leaseStart), signed(r.leaseEnd),
			r.retries, r.attempts, signed(r.attemptAt))
	}
	for i := range c.kv {
		r := &c.kv[i]
		w.do("kv", r.namespace, r.key, r.value, r.version, int64(r.modified), int64(r.expires))
	}
	for i := range c.dead {
		d := &c.dead[i]
		w.do("dead", d.id, d.queue, d.queueNum, d.partition, d.partID, d.group, d.txn, d.message[:], d.text, d.retryCount, int64(d.at), d.data)
	}
	for i := range c.traces {
		t := &c.traces[i]
		w.do("trace", t.id, t.txn, t.part, t.group, t.event, jsonStrings(t.names), t.data, int64(t.at))
	}
}

func (w *writing) messages(segs []storedSegment) {
	for i := range segs {
		g := &segs[i]
		id := w.store.nextID
		w.store.nextID++
		w.do("body", id, g.blob)
		w.do("segment", g.part, signed(g.base), len(g.hashes), id, encodeIDs(g.base, g.spans, g.hashes))
		w.bytes += len(g.blob)
	}
}

func (w *writing) timers(c *changes) {
	for i := range c.timers {
		t := &c.timers[i]
		w.do("timer", t.num, t.queue, t.key, t.partition, t.txn, t.id[:], int64(t.at), int64(t.created), int64(t.modified))
		w.do("timerbody", t.num, t.payload)
		w.bytes += len(t.payload)
	}
	for _, num := range c.noTimers {
		w.do("notimer", num)
		w.do("notimerb", num)
	}
}

func (w *writing) groupRemovals(c *changes) {
	for _, g := range c.noGroups {
		w.do("nogroup", g.queue, g.name)
		w.do("nocursors", g.name, g.queue)
	}
}

func (w *writing) removals(c *changes) {
	for _, k := range c.noKV {
		w.do("nokv", k.namespace, k.key)
	}
	for _, id := range c.noDead {
		w.do("nodead", id)
	}
	for _, num := range c.noQueues {
		for _, statement := range []string{"noqbodies", "noqsegs", "noqcursors", "noqparts", "noqgroups", "noqueue"} {
			w.do(statement, num)
		}
	}
}

// SQLite's integers are signed.
func signed(n uint64) int64   { return int64(n) }
func unsigned(n int64) uint64 { return uint64(n) }

// encodeIDs packs when the messages of a row were stored, and the hashes of
// their ids: the number of spans, each as its distance from the base and its
// time, then eight bytes a hash.
func encodeIDs(base uint64, spans []span, hashes []uint64) []byte {
	out := make([]byte, 0, 2+len(spans)*12+8*len(hashes))
	out = binary.AppendUvarint(out, uint64(len(spans)))
	last := micros(0)
	for _, s := range spans {
		out = binary.AppendUvarint(out, s.start-base)
		out = binary.AppendVarint(out, int64(s.at-last))
		last = s.at
	}
	for _, h := range hashes {
		out = binary.LittleEndian.AppendUint64(out, h)
	}
	return out
}

func decodeIDs(base uint64, b []byte) (spans []span, hashes []uint64, err error) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)) {
		return nil, nil, errCorrupt
	}
	b = b[w:]
	last := micros(0)
	spans = make([]span, n)
	for i := range spans {
		start, w := binary.Uvarint(b)
		if w <= 0 {
			return nil, nil, errCorrupt
		}
		at, v := binary.Varint(b[w:])
		if v <= 0 {
			return nil, nil, errCorrupt
		}
		b = b[w+v:]
		last += micros(at)
		spans[i] = span{base + start, last}
	}
	if len(b)%8 != 0 {
		return nil, nil, errCorrupt
	}
	hashes = make([]uint64, len(b)/8)
	for i := range hashes {
		hashes[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return spans, hashes, nil
}

func (k hashKey) bytes() []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, k.k0), k.k1)
}

func hashKeyOf(b []byte) (hashKey, error) {
	if len(b) != 16 {
		return hashKey{}, errCorrupt
	}
	return hashKey{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}, nil
}
