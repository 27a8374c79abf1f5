package devbroker

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// selectRuns reads the rows that hold any of [from, to).
const selectRuns = `
SELECT base, count, extents FROM run
WHERE part = ?1 AND base < ?3 AND base >= coalesce((SELECT max(base) FROM run WHERE part = ?1 AND base <= ?2), ?2)
ORDER BY base`

// segmentsRead is what is read of a partition, in order.
type segmentsRead struct {
	part     int64
	from, to uint64
	limit    int // bytes left
	out      []storedSegment
	bodies   bodyReader
}

// readTries bounds how often files may vanish under one read.
const readTries = 5

// segments reads again when a file is gone: its messages were deleted, and it
// with them, since the rows were read.
func (s *sqliteStore) segments(part int64, from, to uint64, limit int) (out []storedSegment, err error) {
	for range readTries {
		out, err = s.segmentsNow(part, from, to, limit)
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return out, err
}

func (s *sqliteStore) segmentsNow(part int64, from, to uint64, limit int) ([]storedSegment, error) {
	r := &segmentsRead{part: part, from: from, to: to, limit: limit, bodies: bodyReader{b: s.bodies}}
	defer r.bodies.close()
	// The journal first: what is folded meanwhile is found twice, never not.
	recent := s.journal.of(part, from, to)
	err := r.runs(s)
	for i := 0; i < len(recent) && err == nil; i++ {
		err = r.take(recent[i])
	}
	return r.out, err
}

// runs takes what is folded.
func (r *segmentsRead) runs(s *sqliteStore) error {
	rows, err := s.readRuns.QueryContext(context.Background(), r.part, signed(r.from), signed(r.to))
	if err != nil {
		return fmt.Errorf("read messages: %w", err)
	}
	defer rows.Close() //nolint:errcheck // reading is over, rows.Err tells
	for r.limit > 0 && rows.Next() {
		var base, count int64
		var packed sql.RawBytes
		if err := rows.Scan(&base, &count, &packed); err != nil {
			return fmt.Errorf("read messages: %w", err)
		}
		extents, err := decodeExtents(packed)
		if err != nil {
			return err
		}
		at := unsigned(base)
		for _, p := range extents {
			if err := r.take(piece{base: at, extent: p}); err != nil {
				return err
			}
			at += uint64(p.count)
		}
	}
	return rows.Err()
}

// take reads a segment, if it is wanted and there is room.
func (r *segmentsRead) take(p piece) (err error) {
	end := p.base + uint64(p.extent.count)
	if end <= r.from || p.base >= r.to || r.limit <= 0 {
		return nil
	}
	if p.body == nil {
		if p.body, err = r.bodies.read(p.extent); err != nil {
			return err
		}
	}
	seg := storedSegment{part: r.part, base: p.base}
	if seg.spans, seg.blob, err = decodeBody(p.base, p.body); err != nil {
		return fmt.Errorf("read messages of partition %d at %d: %w", r.part, p.base, err)
	}
	r.limit -= len(seg.blob)
	r.from = end
	r.out = append(r.out, seg)
	return nil
}

func (s *sqliteStore) timerPayload(num int64) ([]byte, error) {
	payload := []byte{}
	err := s.readTimer.QueryRowContext(context.Background(), num).Scan(&payload)
	if payload == nil {
		payload = []byte{}
	}
	return payload, err
}

// loading reads a snapshot. The first error sticks.
type loading struct {
	store *sqliteStore
	snap  *snapshot
	err   error
}

func (s *sqliteStore) load() (*snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &loading{store: s, snap: &snapshot{}}
	l.meta()
	l.queues()
	l.positions()
	l.timers()
	l.rest()
	return l.snap, l.err
}

// each runs a query and calls row once per row.
func (l *loading) each(what, query string, row func(scan func(...any) error) error, args ...any) {
	if l.err != nil {
		return
	}
	rows, err := l.store.write.QueryContext(context.Background(), query, args...)
	if err != nil {
		l.err = fmt.Errorf("read %s: %w", what, err)
		return
	}
	defer rows.Close() //nolint:errcheck // reading is over, rows.Err tells
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			l.err = fmt.Errorf("read %s: %w", what, err)
			return
		}
	}
	l.err = rows.Err()
}

func (l *loading) meta() {
	l.each("meta", `SELECT key, value FROM meta`, func(scan func(...any) error) error {
		var key string
		var value any
		if err := scan(&key, &value); err != nil {
			return err
		}
		var err error
		switch v := value.(type) {
		case []byte:
			l.snap.key, err = hashKeyOf(v)
		case int64:
			l.snap.version = v
		}
		return err
	})
}

func (l *loading) queues() {
	l.each("queues", `SELECT num, id, name, namespace, task, created, options FROM queue`, func(scan func(...any) error) error {
		var q queueRow
		var opts string
		if err := scan(&q.num, &q.id, &q.name, &q.namespace, &q.task, &q.created, &opts); err != nil {
			return err
		}
		l.snap.queues = append(l.snap.queues, q)
		return json.Unmarshal([]byte(opts), &l.snap.queues[len(l.snap.queues)-1].opts)
	})
	l.each("partitions", `SELECT num, queue, id, name, created, first, next, known FROM part ORDER BY num`, func(scan func(...any) error) error {
		var p partitionRow
		err := scan(&p.num, &p.queue, &p.id, &p.name, &p.created, &p.first, &p.next, &p.known)
		l.snap.parts = append(l.snap.parts, p)
		return err
	})
}

func (l *loading) positions() {
	l.each("groups", `SELECT queue, name, everything, since, created, conflates FROM grp ORDER BY created`, func(scan func(...any) error) error {
		var g groupRow
		err := scan(&g.queue, &g.name, &g.all, &g.since, &g.created, &g.conflates)
		l.snap.groups = append(l.snap.groups, g)
		return err
	})
	l.each("cursors", `SELECT part, grp, next, lease, until, lease_start, lease_end, retries, attempts, attempt_at, conflated FROM cursor`,
		func(scan func(...any) error) error {
			var c cursorRow
			err := scan(&c.part, &c.group, &c.next, &c.lease, &c.until, &c.leaseStart, &c.leaseEnd, &c.retries, &c.attempts, &c.attemptAt, &c.conflated)
			l.snap.cursors = append(l.snap.cursors, c)
			return err
		})
}

// selectIDs reads the ids of every partition from where it says on.
const selectIDs = `
SELECT r.part, r.base, r.ids FROM part p JOIN run r ON r.part = p.num
WHERE r.base >= coalesce((SELECT max(base) FROM run WHERE part = p.num AND base <= p.known), 0)
ORDER BY r.part, r.base`

// ids reads the id index without touching message bytes.
func (s *sqliteStore) ids(row func(idRow)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &loading{store: s}
	var blob sql.RawBytes
	l.each("ids", selectIDs, func(scan func(...any) error) error {
		var r idRow
		if err := scan(&r.part, &r.base, &blob); err != nil {
			return err
		}
		var err error
		if r.spans, r.hashes, err = decodeIDs(r.base, blob); err == nil {
			row(r)
		}
		return err
	})
	for _, r := range s.journal.standing() {
		if !r.dropped.Load() {
			row(idRow{part: r.part, base: r.base, spans: r.spans, hashes: r.hashes})
		}
	}
	return l.err
}

func (l *loading) timers() {
	l.each("timers", `SELECT id, queue, key, partition, txn, message, at, created, modified, zstd FROM timer`, func(scan func(...any) error) error {
		var t timerRow
		var id []byte
		err := scan(&t.num, &t.queue, &t.key, &t.partition, &t.txn, &id, &t.at, &t.created, &t.modified, &t.zstd)
		copy(t.id[:], id)
		l.snap.timers = append(l.snap.timers, t)
		return err
	})
}

func (l *loading) rest() {
	l.each("kv", `SELECT ns, key, value, version, modified, expires FROM kv`, func(scan func(...any) error) error {
		var r kvStored
		err := scan(&r.namespace, &r.key, &r.value, &r.version, &r.modified, &r.expires)
		l.snap.kv = append(l.snap.kv, r)
		return err
	})
	l.each("dead letters", `SELECT id, queue, queue_num, partition, part_id, grp, txn, message, text, retries, at, data FROM dead`,
		func(scan func(...any) error) error {
			var d deadLetter
			var id []byte
			err := scan(&d.id, &d.queue, &d.queueNum, &d.partition, &d.partID, &d.group, &d.txn, &id, &d.text, &d.retryCount, &d.at, &d.data)
			copy(d.message[:], id)
			l.snap.dead = append(l.snap.dead, d)
			return err
		})
	l.each("traces", `SELECT id, txn, part, grp, event, names, data, at FROM trace ORDER BY at`, func(scan func(...any) error) error {
		var t trace
		var names string
		if err := scan(&t.id, &t.txn, &t.part, &t.group, &t.event, &names, &t.data, &t.at); err != nil {
			return err
		}
		err := json.Unmarshal([]byte(names), &t.names)
		l.snap.traces = append(l.snap.traces, t)
		return err
	})
}
