package devbroker

import "time"

// hold sees to it that the clock looks at a cursor at a time: when its lease
// ends, or when a holdback has passed.
func (b *Broker) hold(c *cursor, at micros) {
	if c.held != 0 && c.wakeAt <= at {
		return // the clock looks sooner, and will come back
	}
	c.wakeAt = at
	b.st.holds.put(c)
	if c.held == 1 {
		b.ringAt()
	}
}

// ringAt tells the clock that something comes first that did not before.
func (b *Broker) ringAt() {
	select {
	case b.alarm <- struct{}{}:
	default:
	}
}

// runClock ends leases and fires timers when they are due.
func (b *Broker) runClock() {
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	for {
		next, stored := b.tick()
		_ = stored.wait() // the broker is down then, and the next tick sees it
		alarm.Reset(next)
		select {
		case <-alarm.C:
		case <-b.alarm:
		case <-b.ctx.Done():
			return
		}
	}
}

// tick does what is due and returns how long nothing else will be. While more
// is due than a round fires, the next waits until this one is stored: what
// fired is in memory until then.
func (b *Broker) tick() (next time.Duration, stored ticket) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.usable() != nil {
		return time.Second, nil
	}
	b.endHolds(b.now())
	if b.fireDue() {
		return 0, b.ticket()
	}
	return b.untilNext(), nil
}

func (b *Broker) untilNext() time.Duration {
	next := never
	if c, ok := b.st.holds.first(); ok {
		next = min(next, c.wakeAt)
	}
	if t, ok := b.st.pending.first(); ok {
		next = min(next, t.at)
	}
	wait := next - b.now()
	if wait > micros(time.Hour/time.Microsecond) {
		return time.Hour
	}
	return max(0, time.Duration(wait)*time.Microsecond)
}

// endHolds looks at the cursors whose time has come.
func (b *Broker) endHolds(now micros) {
	for {
		c, ok := b.st.holds.first()
		if !ok || c.wakeAt > now {
			return
		}
		b.st.holds.remove(c)
		switch {
		case c.leased(now):
			b.hold(c, c.until)
		case c.lease != "":
			b.dropLease(c)
			b.release(c, now)
		case !c.inReady:
			b.release(c, now)
		}
	}
}
