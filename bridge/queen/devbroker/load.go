package devbroker

// load fills an empty state from the store.
func (b *Broker) load() error {
	snap, err := b.store.load()
	if err != nil {
		return err
	}
	if b.st == nil { // it never changes, and is read without the lock
		b.key = snap.key
	}
	b.st = newState()
	b.st.version = snap.version
	b.cache = cache{limit: b.cfg.CacheBytes}
	b.batch, b.inflight = nil, nil // nothing is noted while loading
	b.loadQueues(snap)
	parts, err := b.loadIDs()
	if err != nil {
		return err
	}
	b.loadCursors(parts, snap)
	b.loadRest(snap)
	if b.store.durable() {
		b.batch = newBatch()
	}
	return nil
}

func (b *Broker) loadQueues(snap *snapshot) {
	queues := make(map[int64]*queue, len(snap.queues))
	for _, r := range snap.queues {
		q := &queue{
			num: r.num, id: r.id, name: r.name, namespace: r.namespace, task: r.task,
			created: r.created, opts: r.opts, parts: map[string]*partition{},
		}
		queues[r.num], b.st.queues[r.name] = q, q
		b.st.lastNum = max(b.st.lastNum, r.num)
	}
	for _, r := range snap.groups {
		if q := queues[r.queue]; q != nil {
			q.groups = append(q.groups, &group{queue: q, name: r.name, all: r.all, conflates: r.conflates, since: r.since, created: r.created})
		}
	}
	for _, r := range snap.parts {
		b.st.lastNum = max(b.st.lastNum, r.num)
		if q := queues[r.queue]; q != nil {
			p := &partition{num: r.num, queue: q, id: r.id, name: r.name, created: r.created, first: r.first, next: r.next, known: r.known}
			b.linkPartition(p)
		}
	}
}

// loadIDs fills the id index of each partition and returns the partitions by
// number.
func (b *Broker) loadIDs() (map[int64]*partition, error) {
	parts := make(map[int64]*partition, len(b.st.parts))
	for _, p := range b.st.parts {
		parts[p.num] = p
	}
	err := b.store.ids(func(r idRow) {
		if p := parts[r.part]; p != nil {
			p.ids.load(r)
		}
	})
	for _, p := range parts {
		p.next = max(p.next, p.ids.next()) // the row is written by retention only
		p.ids.settleAt(p.next)
		p.lastPush = p.ids.stored(p.next)
	}
	return parts, err
}

func (b *Broker) loadCursors(parts map[int64]*partition, snap *snapshot) {
	for _, r := range snap.cursors {
		p := parts[r.part]
		if p == nil {
			continue
		}
		if g := p.queue.group(r.group); g != nil {
			b.loadCursor(p.cursor(g), r)
		}
	}
	now := b.now()
	for _, p := range parts {
		for _, c := range p.cursors {
			b.release(c, now)
		}
	}
}

func (b *Broker) loadCursor(c *cursor, r cursorRow) {
	c.next, c.known, c.retries = r.next, true, r.retries
	c.attempts, c.attemptAt = r.attempts, r.attemptAt
	if r.lease == "" {
		return
	}
	c.lease, c.until, c.leaseStart, c.leaseEnd = r.lease, r.until, r.leaseStart, r.leaseEnd
	c.conflated = r.conflated
	b.st.leases[c.lease] = append(b.st.leases[c.lease], c)
	b.hold(c, c.until)
}

func (b *Broker) loadRest(snap *snapshot) {
	for _, r := range snap.timers {
		of := b.st.timers[r.queue]
		if of == nil {
			of = &ordered[*timer]{}
			b.st.timers[r.queue] = of
		}
		b.st.lastNum = max(b.st.lastNum, r.num)
		t := &timer{
			num: r.num, queue: r.queue, key: r.key, partition: r.partition, txn: r.txn, id: r.id, at: r.at,
			created: r.created, modified: r.modified, zstd: r.zstd,
		}
		of.set(r.key, t)
		b.st.pending.put(t)
	}
	for _, r := range snap.kv {
		b.setKV(r.kvKey, &kvRow{value: r.value, version: r.version, modified: r.modified, expires: r.expires})
	}
	for i := range snap.dead {
		b.st.dead[snap.dead[i].id] = &snap.dead[i]
	}
	for i := range snap.traces {
		b.st.traces = append(b.st.traces, &snap.traces[i])
	}
}

// recover brings a broker back whose store had failed: the state is read again
// from the store, for what could not be stored must not be known either.
func (b *Broker) recover() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.down == nil {
		return
	}
	old := b.st
	if err := b.store.commit(&changes{version: b.st.version}); err != nil {
		return
	}
	if err := b.load(); err != nil {
		b.log.Error("reading the state back failed", "err", err)
		b.st = old
		b.batch = newBatch()
		return
	}
	b.down = nil
	b.ringAt()
	b.log.Info("the store works again")
}

// wakeEverybody lets every parked pop look again, and find what has become of
// the broker.
func (b *Broker) wakeEverybody() {
	for _, l := range b.st.discovery {
		wakeAll(l)
	}
	for _, l := range b.st.absent {
		wakeAll(l)
	}
	for _, q := range b.st.queues {
		for _, g := range q.groups {
			b.wakeGroup(g)
		}
	}
}
