package devbroker

// Bounds of what fires while the lock is held: timers, and bytes of messages.
const (
	fireRound = 256
	fireBytes = 8 << 20
)

// fireDue appends what is due, soonest first, and reports whether more may be
// due. A fire appends the message and removes the timer in one commit, skips
// deduplication and makes queue and partition where they are missing
// (queen-contract.md §9.1).
func (b *Broker) fireDue() (more bool) {
	now := b.now()
	fired, size := 0, 0
	for ; fired < fireRound && size < fireBytes; fired++ {
		t, ok := b.st.pending.first()
		if !ok || t.at > now {
			break
		}
		if t.payload == nil && !b.fetchPayload(t) {
			break
		}
		size += b.fire(t)
	}
	if fired > 0 {
		b.ticket() // starts the writer
	}
	return fired == fireRound || size >= fireBytes
}

// fire appends the message of a timer and returns its size.
func (b *Broker) fire(t *timer) (size int) {
	if b.alreadyFired(t) {
		b.removeTimer(t)
		return 0
	}
	txn, payload := []byte(t.txn), t.payload
	if t.zstd {
		payload = unpack(payload, maxUnpacked)
	}
	var pc parcel
	pc.add(message{id: t.id, txn: txn, payload: payload}, b.key.hash(txn))
	b.append(b.partitionOf([]byte(t.queue), []byte(t.partition)), pc)
	b.removeTimer(t)
	b.counts.fired++
	return len(pc.blob)
}

// fetchPayload reads a payload that was let go of. One that cannot be read
// stays pending, and is tried again a second later.
func (b *Broker) fetchPayload(t *timer) bool {
	payload, err := b.store.timerPayload(t.num)
	if err == nil {
		t.payload = payload
		return true
	}
	b.log.Error("reading a timer's payload failed; trying again in a second",
		"queue", t.queue, "key", t.key, "err", err)
	t.at = b.now() + 1e6
	b.st.pending.put(t)
	return false
}

// keepPayload is the time before it is due from which a timer's payload stays
// in memory.
const keepPayload = micros(30e6)

// dropPayload lets go of a payload that is on disk and not due soon.
func (b *Broker) dropPayload(t *timer) {
	if t == nil || t.slot == 0 || t.at < b.now()+keepPayload {
		return
	}
	if b.batch.timers[t.num] == nil { // else it changed again since
		t.payload = nil
	}
}
