package devbroker

import "time"

// runRetention deletes, round by round, what retention does not keep, and
// brings the store back after a failure.
func (b *Broker) runRetention() {
	every := time.NewTicker(b.cfg.RetentionInterval)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-b.ctx.Done():
			return
		}
		if err := b.update(b.retain); err != nil {
			b.recover()
		}
	}
}

// retain is one round.
func (b *Broker) retain() {
	b.expireKV()
	for _, q := range b.st.queues {
		for _, p := range q.order {
			b.retainPartition(p)
		}
	}
}

// retainPartition deletes by age what the queue's options say, leased messages
// too, and forgets ids nothing needs any more (queen-contract.md §2.1, §5.2).
func (b *Broker) retainPartition(p *partition) {
	now := b.now()
	o := &p.queue.opts
	first := p.first
	if o.RetentionEnabled && o.Retention > 0 {
		first = max(first, p.youngerThan(now, o.Retention))
	}
	if o.RetentionEnabled && o.CompletedRetention > 0 {
		first = max(first, min(p.consumed(), p.youngerThan(now, o.CompletedRetention)))
	}
	if o.MaxWaitTime > 0 {
		first = max(first, p.youngerThan(now, o.MaxWaitTime))
	}
	if first > p.first {
		p.first = first
		b.dropCached(p)
		b.notePartition(p)
	}
	memory := int64(o.idMemory() / time.Second)
	p.ids.forget(min(p.youngerThan(now, memory), max(p.consumed(), p.first)))
	if p.ids.base >= p.known+writeKnown {
		p.known = p.ids.base
		b.notePartition(p)
	}
}

// writeKnown is how many forgotten ids make it worth writing down that the
// next start need not read them: this bounds how long a start takes.
const writeKnown = 4096

// youngerThan is the first known offset stored within the last seconds.
func (p *partition) youngerThan(now micros, seconds int64) uint64 {
	return p.ids.firstSince(now.add(-time.Duration(min(seconds, maxLeaseSeconds)) * time.Second))
}

// dropCached lets go of deleted messages that are in memory.
func (b *Broker) dropCached(p *partition) {
	for len(p.tail) > 0 && p.tail[0].end() <= p.first && p.tail[0].batch == nil {
		s := p.tail[0]
		p.uncache(s) // a pop may be reading it; the cache lets go of it in turn
	}
}
