package devbroker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// ordered is a map with its keys in order.
func TestOrdered(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var m ordered[int]
		model := map[string]int{}
		key := rapid.StringMatching(`[a-c]{0,3}[0-9]{0,3}`)
		for i := range rapid.IntRange(0, 1500).Draw(t, "steps") {
			k := key.Draw(t, "key")
			if rapid.IntRange(0, 3).Draw(t, "op") == 0 {
				m.remove(k)
				delete(model, k)
			} else {
				m.set(k, i)
				model[k] = i
			}
		}
		if m.len() != len(model) {
			t.Fatalf("len = %d, want %d", m.len(), len(model))
		}
		from := key.Draw(t, "from")
		want := slices.DeleteFunc(slices.Sorted(maps.Keys(model)), func(k string) bool { return k < from })
		var got []string
		for k, v := range m.from(from) {
			got = append(got, k)
			if v != model[k] {
				t.Errorf("%q = %d, want %d", k, v, model[k])
			}
			if v, ok := m.get(k); !ok || v != model[k] {
				t.Errorf("get(%q) = %d %v", k, v, ok)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("from(%q) = %v, want %v", from, got, want)
		}
	})
}

type due struct {
	at   micros
	slot int
}

func (d *due) dueAt() micros { return d.at }
func (d *due) place() *int   { return &d.slot }

// agenda gives the soonest first, whatever was moved or removed.
func TestAgenda(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var a agenda[*due]
		items := make([]*due, 20)
		for i := range items {
			items[i] = &due{}
		}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			d := items[rapid.IntRange(0, len(items)-1).Draw(t, "item")]
			if rapid.Bool().Draw(t, "remove") {
				a.remove(d)
				continue
			}
			d.at = micros(rapid.IntRange(0, 50).Draw(t, "at"))
			a.put(d)
		}
		last := micros(-1)
		for a.len() > 0 {
			d, _ := a.first()
			if d.at < last {
				t.Fatalf("%d after %d", d.at, last)
			}
			last = d.at
			a.remove(d)
			if d.slot != 0 {
				t.Fatal("removed, but has a place")
			}
		}
	})
}

// idIndex agrees with a plain list of what was added.
func TestIDIndex(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var x idIndex
		type entry struct {
			hash uint64
			at   micros
		}
		var all []entry
		now := micros(1)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			now += micros(rapid.IntRange(0, 2).Draw(t, "time"))
			if rapid.IntRange(0, 9).Draw(t, "op") == 0 {
				x.forget(x.base + uint64(rapid.IntRange(0, 20).Draw(t, "forget")))
				continue
			}
			hashes := rapid.SliceOfN(rapid.Uint64Range(0, 40), 1, 8).Draw(t, "hashes")
			x.add(now, hashes...)
			for _, h := range hashes {
				all = append(all, entry{h, now})
			}
		}
		if x.next() != uint64(len(all)) {
			t.Fatalf("next = %d, want %d", x.next(), len(all))
		}
		hash := rapid.Uint64Range(0, 40).Draw(t, "hash")
		from := uint64(rapid.IntRange(0, len(all)).Draw(t, "from"))
		newest, lowest := -1, -1
		for i, e := range all {
			if uint64(i) < x.base || e.hash != hash {
				continue
			}
			newest = i
			if lowest < 0 && uint64(i) >= from {
				lowest = i
			}
		}
		if o, ok := x.newest(hash); ok != (newest >= 0) || ok && o != uint64(newest) {
			t.Errorf("newest = %d %v, want %d", o, ok, newest)
		}
		if o, ok := x.lowest(hash, from, x.next()); ok != (lowest >= 0) || ok && o != uint64(lowest) {
			t.Errorf("lowest = %d %v, want %d", o, ok, lowest)
		}
		for o := x.base; o < x.next(); o++ {
			if got := x.stored(o); got != all[o].at {
				t.Errorf("stored(%d) = %d, want %d", o, got, all[o].at)
			}
		}
		since := micros(rapid.IntRange(0, int(now)+1).Draw(t, "since"))
		want := x.next()
		for o := x.base; o < x.next(); o++ {
			if all[o].at >= since {
				want = o
				break
			}
		}
		if got := x.firstSince(since); got != want {
			t.Errorf("firstSince(%d) = %d, want %d", since, got, want)
		}
	})
}

// What encodeIDs packs, decodeIDs unpacks.
func TestEncodeIDs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Uint64Range(0, 1<<40).Draw(t, "base")
		hashes := rapid.SliceOf(rapid.Uint64()).Draw(t, "hashes")
		var spans []span
		for i := range rapid.IntRange(0, 5).Draw(t, "spans") {
			spans = append(spans, span{base + uint64(i), micros(rapid.Int64Range(0, 1<<51).Draw(t, "at"))})
		}
		gotSpans, gotHashes, err := decodeIDs(base, encodeIDs(base, spans, hashes))
		if err != nil || !slices.Equal(gotSpans, spans) || !slices.Equal(gotHashes, hashes) {
			t.Errorf("decodeIDs = %v %v %v, want %v %v", gotSpans, gotHashes, err, spans, hashes)
		}
	})
}

// The reference vector of SipHash-1-3 with the key 00…0f: the published
// implementation gives these for the inputs "" and 00 01 … 0e.
func TestSipHash(t *testing.T) {
	t.Parallel()
	key, err := hashKeyOf([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	if err != nil {
		t.Fatal(err)
	}
	input := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
	seen := map[uint64]int{}
	for n := range len(input) + 1 {
		h := key.hash(input[:n])
		if m, ok := seen[h]; ok {
			t.Errorf("%d and %d bytes hash alike", n, m)
		}
		seen[h] = n
	}
	if got := key.hash(nil); got != 0xabac0158050fc4dc {
		t.Errorf("hash of nothing = %#x, want 0xabac0158050fc4dc", got)
	}
}

// FuzzScanner: the scanner accepts exactly the JSON that encoding/json accepts
// in valid UTF-8, and skips exactly one value.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-0.5e+3,true,null,"x\"\\\u00e9\n"]}`, `"\ud800"`, `"abcdefgh\"ijklmno\\pqrstuv"`, `[[],{},[{}]]`, `01`, `1.`, `-`, `1e`, `"\x"`,
		`"` + strings.Repeat(`\"`, 20) + `"`, "\"a\x01\"", `{"a":1,}`, `[1,]`, `{"a" 1}`, `nul`, ` 1 `, `"abcdefg\`, `{1:2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		s, err := scan(doc)
		var raw []byte
		if err == nil {
			raw, err = s.raw()
		}
		if err == nil {
			err = s.end()
		}
		want := json.Valid(doc) && utf8.Valid(doc)
		if depth := bytes.Count(doc, []byte{'['}) + bytes.Count(doc, []byte{'{'}); (err == nil) != want && depth < 9000 {
			t.Fatalf("scan(%q) = %v, encoding/json says %v", doc, err, want)
		}
		if err == nil && !bytes.Equal(raw, bytes.TrimSpace(doc)) && !bytes.Equal(raw, bytes.Trim(doc, " \t\r\n")) {
			t.Errorf("raw(%q) = %q", doc, raw)
		}
	})
}

// FuzzCanonical: what canonical accepts means the same, and stays as it is
// when it is done again.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{"b":1,"a":{"d":1.10,"c":[]}}`, `"\u0000\u001f\ud83d\ude00"`, `-0`, `1e23`, `123456789012345678901234567890`, `{"a":1,"a":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		once, err := canonical(doc)
		if err != nil {
			return
		}
		if !json.Valid(once) {
			t.Fatalf("canonical(%q) = %q, which is not JSON", doc, once)
		}
		twice, err := canonical(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Errorf("canonical(%q) = %q, again %q %v", doc, once, twice, err)
		}
		var a, b any
		if json.Unmarshal(doc, &a) == nil && json.Unmarshal(once, &b) == nil && fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("canonical(%q) = %q: %v became %v", doc, once, a, b)
		}
	})
}

// settle never moves a cursor back, never past a nack that stays, and settles
// what it says.
func TestSettleInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := position{
			next: uint64(rapid.IntRange(0, 5).Draw(t, "next")), leased: rapid.Bool().Draw(t, "leased"),
			retries: int64(rapid.IntRange(0, 3).Draw(t, "retries")), limit: int64(rapid.IntRange(0, 3).Draw(t, "limit")),
			keepDead: rapid.Bool().Draw(t, "keepDead"),
		}
		p.leaseEnd = p.next + uint64(rapid.IntRange(1, 5).Draw(t, "length"))
		var acks []resolved
		for range rapid.IntRange(0, 6).Draw(t, "acks") {
			acks = append(acks, resolved{
				offset: rapid.Uint64Range(p.next, p.leaseEnd-1).Draw(t, "offset"),
				status: ackStatus(rapid.IntRange(0, 3).Draw(t, "status")),
			})
		}
		d := settle(p, acks)
		head, signal := headSignal(acks)
		switch {
		case d.next < p.next:
			t.Error("the cursor went back")
		case d.dead && d.next <= head:
			t.Error("a dead letter stays in the batch")
		case signal != ackCompleted && !d.release:
			t.Error("a nack left the lease")
		case signal == ackRetry && (d.next > head || d.retries != p.retries):
			t.Error("a retry was charged or lost")
		case signal == ackFailed && p.retries < p.limit && (d.next > head || d.retries != p.retries+1 || d.dead):
			t.Error("a failed message within its budget was lost or not charged")
		case signal == ackCompleted && d.release && d.next < p.leaseEnd:
			t.Error("a partial ack released the lease")
		}
	})
}
