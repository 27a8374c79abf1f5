package devbroker

import (
	"encoding/binary"
	"math/bits"
)

// hashKey keys the hashes of transaction ids, which outsiders choose. It is
// stored with the data, since hashes are.
type hashKey struct{ k0, k1 uint64 }

// hash is SipHash-1-3 (Aumasson and Bernstein) of a transaction id.
func (k hashKey) hash(text []byte) uint64 {
	v0, v1 := k.k0^0x736f6d6570736575, k.k1^0x646f72616e646f6d
	v2, v3 := k.k0^0x6c7967656e657261, k.k1^0x7465646279746573
	length := uint64(len(text)) << 56
	for len(text) >= 8 {
		m := binary.LittleEndian.Uint64(text)
		v3 ^= m
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0 ^= m
		text = text[8:]
	}
	for i, c := range text {
		length |= uint64(c) << (8 * i)
	}
	v3 ^= length
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0 ^= length
	v2 ^= 0xff
	for range 3 {
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	}
	return v0 ^ v1 ^ v2 ^ v3
}

func sipRound(v0, v1, v2, v3 uint64) (uint64, uint64, uint64, uint64) {
	v0 += v1
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v0 = bits.RotateLeft64(v0, 32)
	v2 += v3
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 += v3
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v2 += v1
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	v2 = bits.RotateLeft64(v2, 32)
	return v0, v1, v2, v3
}
