package devbroker

import (
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"time"
)

// This file writes JSON and the forms of ids and times that 1.3.0 uses.

const hexDigits = "0123456789abcdef"

// appendString writes a JSON string the way serde_json does: raw UTF-8, the
// short escapes, \u00xx for the other control characters.
func appendString[T string | []byte](dst []byte, text T) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(dst, text[from:]...), '"')
}

// jsonObject writes one object, member by member, in the order called. The
// zero value is an empty object; take it with bytes.
type jsonObject struct{ buf []byte }

func (o *jsonObject) key(name string) {
	if len(o.buf) == 0 {
		o.buf = append(o.buf, '{')
	} else {
		o.buf = append(o.buf, ',')
	}
	o.buf = append(append(append(o.buf, '"'), name...), '"', ':')
}

func (o *jsonObject) str(name, value string) *jsonObject {
	o.key(name)
	o.buf = appendString(o.buf, value)
	return o
}

// strOrNull writes null for an empty value.
func (o *jsonObject) strOrNull(name, value string) *jsonObject {
	if value == "" {
		return o.raw(name, "null")
	}
	return o.str(name, value)
}

func (o *jsonObject) num(name string, value int64) *jsonObject {
	o.key(name)
	o.buf = strconv.AppendInt(o.buf, value, 10)
	return o
}

func (o *jsonObject) flag(name string, value bool) *jsonObject {
	o.key(name)
	o.buf = strconv.AppendBool(o.buf, value)
	return o
}

func (o *jsonObject) raw(name, value string) *jsonObject {
	o.key(name)
	o.buf = append(o.buf, value...)
	return o
}

// member writes a member whose name comes from outside.
func (o *jsonObject) member(name string, value []byte) {
	o.key("")
	o.buf = appendString(o.buf[:len(o.buf)-len(`"":`)], name)
	o.buf = append(append(o.buf, ':'), value...)
}

func (o *jsonObject) bytes() []byte {
	if len(o.buf) == 0 {
		return []byte("{}")
	}
	return append(o.buf, '}')
}

// jsonList joins encoded values into an array.
func jsonList[T string | []byte](values []T) string {
	out := []byte{'['}
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return string(append(out, ']'))
}

// jsonStrings encodes a list of strings.
func jsonStrings(values []string) string {
	list := make([][]byte, len(values))
	for i, v := range values {
		list[i] = appendString(nil, v)
	}
	return jsonList(list)
}

// micros is a time in microseconds since 1970, the broker's resolution.
type micros int64

// never is later than every time.
const never = micros(1<<63 - 1)

func microsOf(t time.Time) micros { return micros(t.UnixMicro()) }

func (m micros) time() time.Time { return time.UnixMicro(int64(m)).UTC() }

func (m micros) add(d time.Duration) micros { return m + micros(d/time.Microsecond) }

// stamp is the form of pops, leases and timers: microseconds and Z.
func (m micros) stamp() string { return m.time().Format("2006-01-02T15:04:05.000000Z") }

// milli is the form of queues, dead letters and the message routes.
func (m micros) milli() string { return m.time().Format("2006-01-02T15:04:05.000Z") }

// zoned is the form of KV and consumer groups: +00:00, trailing zeros cut.
func (m micros) zoned() string { return m.time().Format("2006-01-02T15:04:05.999999+00:00") }

// messageID is a UUID in binary.
type messageID [16]byte

// minter makes time-ordered ids (UUIDv7) for one request; ids of one minter
// carry a counter, so they sort in the order they were made.
type minter struct {
	ms  int64
	seq uint16
}

func newMinter(now micros) minter { return minter{ms: int64(now) / 1000} }

func (m *minter) id() (id messageID) {
	id[0], id[1], id[2] = byte(m.ms>>40), byte(m.ms>>32), byte(m.ms>>24)
	id[3], id[4], id[5] = byte(m.ms>>16), byte(m.ms>>8), byte(m.ms)
	id[6], id[7] = 0x70|byte(m.seq>>8)&0x0f, byte(m.seq)
	m.seq++
	fillRandom(id[8:])
	id[8] = 0x80 | id[8]&0x3f
	return id
}

// randomID makes a UUIDv4, the form of partition and queue ids.
func randomID() string {
	var id messageID
	fillRandom(id[:8])
	fillRandom(id[8:])
	id[6], id[8] = 0x40|id[6]&0x0f, 0x80|id[8]&0x3f
	return id.String()
}

// fillRandom fills eight bytes. The runtime's generator is ChaCha8 seeded by
// the system; lease ids name a right but are no secret: the API is guarded by
// its token.
func fillRandom(b []byte) {
	r := rand.Uint64()
	for i := range b[:8] {
		b[i] = byte(r >> (8 * i))
	}
}

func (id messageID) String() string { return string(id.append(nil)) }

func (id messageID) append(dst []byte) []byte {
	var text [36]byte
	hex.Encode(text[0:8], id[0:4])
	hex.Encode(text[9:13], id[4:6])
	hex.Encode(text[14:18], id[6:8])
	hex.Encode(text[19:23], id[8:10])
	hex.Encode(text[24:36], id[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return append(dst, text[:]...)
}

// parseID reads the usual form of a UUID, in either case.
func parseID(text string) (id messageID, ok bool) {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return id, false
	}
	digits := text[0:8] + text[9:13] + text[14:18] + text[19:23] + text[24:36]
	n, err := hex.Decode(id[:], []byte(digits))
	return id, err == nil && n == len(id)
}
