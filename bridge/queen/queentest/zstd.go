package queentest

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
)

func zstdCases() []testCase {
	rule := "Queen 1.3.0, payloadZstd (measured)"
	return []testCase{
		{name: "Zstd/IsKeptUntilItFires", rule: rule, run: zstdKept},
		{name: "Zstd/IsUnpackedAtTheFire", rule: rule, run: zstdFired},
		{name: "Zstd/MayExpand", rule: rule, run: zstdExpands},
		{name: "Zstd/AsARider", rule: rule, run: zstdRider},
	}
}

// packed is {"a":1} as the zstd program packs it.
const packed = "KLUv/QRYOQAAeyJhIjoxfUiL/DI="

func zstdKept(k *kit) {
	queue := unique("t")
	k.object(k.send("POST", "/api/v1/timers", arr{timerOp(obj{"queue": queue, "timerKey": "k", "payload": packed, "payloadZstd": true})}), 200)
	path := "/api/v1/timers/" + queue
	k.has("peek", k.object(k.send("GET", path+"/k", nil), 200), obj{"payload": packed, "payloadZstd": true})
	rows, _ := k.object(k.send("GET", path, nil), 200)["rows"].(arr)
	row, _ := rows[0].(obj)
	k.has("list", row, obj{"payloadZstd": true})
	k.object(k.send("POST", "/api/v1/timers", arr{timerOp(obj{"queue": queue, "timerKey": "k"})}), 200)
	k.has("replaced by a plain one", k.object(k.send("GET", path+"/k", nil), 200), obj{"payload": "MQ==", "payloadZstd": false})
}

// zstdFired: nobody looks at the bytes before the fire, and what cannot be
// unpacked is null then.
func zstdFired(k *kit) {
	queue := unique("t")
	raw := func(b string) string { return base64.StdEncoding.EncodeToString([]byte(b)) }
	good, _ := base64.StdEncoding.DecodeString(packed)
	want := map[string]string{}
	var ops arr
	for i, c := range []struct {
		payload string
		flag    any
		want    string
	}{
		{packed, true, `{"a":1}`},
		{packed, "true", `{"a":1}`},
		{packed, 1, `{"a":1}`},
		{raw("\x50\x2a\x4d\x18\x02\x00\x00\x00ab" + string(good)), true, `{"a":1}`},
		{raw("hello"), true, "null"},
		{"", true, "null"},
		{raw(string(good[:len(good)-3])), true, "null"},
		{raw(string(good) + "garbage"), true, "null"},
		{raw(`{"a": 1}`), false, `{"a": 1}`},
		{raw(`{"a": 1}`), nil, `{"a": 1}`},
	} {
		key := fmt.Sprint("k", i)
		want[key] = c.want
		ops = append(ops, timerOp(obj{"queue": queue, "timerKey": key, "partition": key, "txn": key, "delayMs": 0, "payload": c.payload, "payloadZstd": c.flag}))
	}
	k.object(k.send("POST", "/api/v1/timers", ops), 200)
	for key, data := range want {
		k.same("data of "+key, string(k.fired(queue, key, key).Messages[0].Data), data)
	}
}

// expanding is a frame of few bytes that becomes a JSON string of n blocks of
// 128 KiB.
func expanding(n int) []byte {
	const raw, repeat, blockSize = 0, 1, 128 << 10
	out := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0x58} // no checksum, no size, a window of 2 MiB
	block := func(last, kind, size uint32, b byte) {
		var head [4]byte
		binary.LittleEndian.PutUint32(head[:], last|kind<<1|size<<3)
		out = append(append(out, head[:3]...), b)
	}
	block(0, raw, 1, '"')
	for range n {
		block(0, repeat, blockSize, 'x')
	}
	block(1, raw, 1, '"')
	return out
}

func zstdExpands(k *kit) {
	queue := unique("t")
	payload := base64.StdEncoding.EncodeToString(expanding(40))
	k.object(k.send("POST", "/api/v1/timers", arr{timerOp(obj{"queue": queue, "timerKey": "k", "partition": "p", "txn": "k", "delayMs": 0, "payload": payload, "payloadZstd": true})}), 200)
	k.same("bytes delivered", len(k.fired(queue, "p", "k").Messages[0].Data), 40*128<<10+2)
}

func zstdRider(k *kit) {
	queue := unique("t")
	k.object(k.send("POST", "/api/v1/transaction", obj{"operations": arr{}, "timers": arr{
		timerOp(obj{"queue": queue, "timerKey": "k", "partition": "p", "txn": "k", "delayMs": 0, "payload": packed, "payloadZstd": true})}}), 200)
	k.same("data", string(k.fired(queue, "p", "k").Messages[0].Data), `{"a":1}`)
}
