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
	"oldruns":    `DELETE FROM run WHERE part = ?1 AND base < ?2 AND base + count <= ?2`,
	"group":      `INSERT OR REPLACE INTO grp VALUES (?, ?, ?, ?, ?, ?)`,
	"cursor":     `INSERT OR REPLACE INTO cursor VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	"journal":    `INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?)`,
	"nojournal":  `DELETE FROM journal WHERE id <= ?`,
	"noentry":    `DELETE FROM journal WHERE id = ?`,
	"run":        `INSERT INTO run VALUES (?, ?, ?, ?, ?)`,
	"file":       `INSERT INTO file VALUES (?, ?, ?, ?) ON CONFLICT (num) DO UPDATE SET live = live + excluded.live, tail = max(tail, excluded.tail)`,
	"tail":       `INSERT INTO file VALUES (?, ?, 0, ?) ON CONFLICT (num) DO UPDATE SET tail = excluded.tail`,
	"freed":      `UPDATE file SET live = live - ? WHERE num = ?`,
	"nofile":     `DELETE FROM file WHERE num = ?`,
	"timer":      `INSERT OR REPLACE INTO timer VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
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
	"noqruns":    `DELETE FROM run WHERE part IN (SELECT num FROM part WHERE queue = ?)`,
	"noqjournal": `DELETE FROM journal WHERE queue = ?`,
	"noqfiles":   `DELETE FROM file WHERE queue = ?`,
	"noqcursors": `DELETE FROM cursor WHERE part IN (SELECT num FROM part WHERE queue = ?)`,
	"noqparts":   `DELETE FROM part WHERE queue = ?`,
	"noqgroups":  `DELETE FROM grp WHERE queue = ?`,
	"noqueue":    `DELETE FROM queue WHERE num = ?`,
}

// commit writes one batch in one SQLite transaction. It cannot be cancelled.
func (s *sqliteStore) commit(c *changes) error {
	if err := s.makeRoom(c); err != nil {
		return err
	}
	s.mu.Lock()
	w := s.newWriting()
	if list := entries(c.segments); !w.logged(c, list) {
		w.all(c, list)
	}
	if w.err == nil {
		s.note(w, c)
	}
	s.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	select {
	case s.written <- w.bytes:
	default: // the checkpointer is busy: the next commit counts for both
		s.carry(w.bytes)
	}
	return nil
}

// note keeps what is known of the journal in step with a commit.
func (s *sqliteStore) note(w *writing, c *changes) {
	s.journal.add(w.recent)
	for _, p := range c.parts {
		if p.first > 0 {
			s.journal.drop(p.num, p.first)
			s.deleted.Store(true)
		}
	}
	for _, num := range c.noQueues {
		s.journal.dropQueue(num)
	}
	if err := s.unlink(w.noFiles); err != nil {
		s.log.Warn("a file of deleted messages stays until the next start", "err", err)
	}
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

// newWriting begins a commit; mu is held, or nobody else is there.
func (s *sqliteStore) newWriting() *writing {
	return &writing{store: s, ctx: context.Background()}
}

// writing is one commit under way. The first error sticks.
type writing struct {
	store   *sqliteStore
	ctx     context.Context
	err     error
	bytes   int
	recent  []*recent     // of the journal, once committed
	freed   map[int64]int // bytes of each file nobody needs any more
	noFiles []int64       // to be removed, once committed
	folded  int64         // the last row of the journal that a fold takes away
	tails   []grownFile
}

// transaction runs f between BEGIN and COMMIT, or ROLLBACK when anything fails.
func (w *writing) transaction(f func()) {
	if w.err != nil {
		return
	}
	if _, w.err = w.store.write.ExecContext(w.ctx, `BEGIN IMMEDIATE`); w.err != nil {
		return
	}
	w.list()
	f()
	if w.err == nil {
		_, w.err = w.store.write.ExecContext(w.ctx, `COMMIT`)
	}
	if w.err == nil {
		w.listed()
		return
	}
	if _, err := w.store.write.ExecContext(w.ctx, `ROLLBACK`); err != nil { // SQLite rolls back by itself when the disk is full
		w.store.log.Debug("rollback", "err", err)
	}
}

// all writes a batch: large bodies to their files first, then the rows.
func (w *writing) all(c *changes, list []*entry) {
	w.bodies(list)
	w.transaction(func() {
		w.groupRemovals(c) // first: the same batch may hold a new group of that name
		w.rows(c)
		w.journal(list)
		w.timers(c)
		w.removals(c)
		w.retainJournal(c.parts)
		w.release()
		if len(c.kv) > 0 || w.bytes == 0 { // a commit of nothing tests the disk
			w.do("version", c.version)
		}
	})
}

// bodies encodes the entries and writes to the files what is too large for the
// journal.
func (w *writing) bodies(list []*entry) {
	for _, e := range list {
		size := e.bound()
		if size < inlineLimit {
			e.encode(make([]byte, 0, size))
			continue
		}
		data := e.encode(w.store.buffer(size))
		if w.err == nil {
			e.file, e.at, w.err = w.store.bodies.append(e.queue, data)
		}
		e.data = nil
		w.store.keep(data)
	}
}

// journal writes a row for each queue.
func (w *writing) journal(list []*entry) {
	for _, e := range list {
		row := w.store.row()
		w.do("journal", row, e.queue, e.file, e.at, e.extents, e.ids, e.data)
		w.bytes += len(e.data)
		w.recent = append(w.recent, e.settle(row)...)
	}
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
			w.retain(p.num, p.first)
		}
	}
	for _, g := range c.groups {
		w.do("group", g.queue, g.name, g.all, int64(g.since), int64(g.created), g.conflates)
	}
	for i := range c.cursors {
		r := &c.cursors[i]
		w.do("cursor", r.part, r.group, signed(r.next), r.lease, int64(r.until), signed(r.leaseStart), signed(r.leaseEnd),
			r.retries, r.attempts, signed(r.attemptAt), r.conflated)
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

func (w *writing) timers(c *changes) {
	for i := range c.timers {
		t := &c.timers[i]
		w.do("timer", t.num, t.queue, t.key, t.partition, t.txn, t.id[:], int64(t.at), int64(t.created), int64(t.modified), t.zstd)
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
		w.noFiles = append(w.noFiles, w.filesOf(num)...)
		for _, statement := range []string{"noqruns", "noqjournal", "noqfiles", "noqcursors", "noqparts", "noqgroups", "noqueue"} {
			w.do(statement, num)
		}
	}
}

// SQLite's integers are signed.
func signed(n uint64) int64   { return int64(n) }
func unsigned(n int64) uint64 { return uint64(n) }

func (k hashKey) bytes() []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, k.k0), k.k1)
}

func hashKeyOf(b []byte) (hashKey, error) {
	if len(b) != 16 {
		return hashKey{}, errCorrupt
	}
	return hashKey{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}, nil
}
