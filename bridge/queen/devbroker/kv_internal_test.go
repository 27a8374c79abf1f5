package devbroker

import (
	"fmt"
	"testing"
)

// Rows go when their time is over, and with their last value only: a key that
// was renewed, removed or made permanent since leaves nothing behind.
func TestExpiredRowsGo(t *testing.T) {
	t.Parallel()
	b := newBroker(Config{}) // nothing runs: the test is the clock
	if err := b.openStore(); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	past, future := b.now()-1, b.now()+1e9
	key := func(i int) kvKey { return kvKey{"n", fmt.Sprint(i)} }
	for i := range 3 * expireRound {
		b.setKV(key(i), &kvRow{expires: past})
	}
	b.setKV(key(0), &kvRow{expires: future})
	b.setKV(key(1), &kvRow{expires: never})
	b.setKV(key(2), nil)
	for range 3 {
		b.expireKV()
	}
	rows := b.st.kv["n"]
	if rows.len() != 2 || b.st.expiring.len() != 1 {
		t.Errorf("%d rows, %d of them with an end, want the renewed and the permanent one", rows.len(), b.st.expiring.len())
	}
	b.setKV(key(0), nil)
	if b.st.expiring.len() != 0 {
		t.Errorf("%d rows are still to expire", b.st.expiring.len())
	}
}
