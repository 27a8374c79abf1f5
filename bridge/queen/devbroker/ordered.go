package devbroker

import (
	"iter"
	"slices"
	"sort"
)

// ordered is a map from strings that can be walked in byte order from any key.
// Keys are kept in sorted blocks, so an insert moves one block's worth at
// most. The zero value is empty.
type ordered[V any] struct {
	blocks []*block[V]
	count  int
}

type block[V any] struct {
	keys   []string
	values []V
}

const blockSize = 256

func (m *ordered[V]) len() int { return m.count }

// find returns the block a key belongs to and its place there.
func (m *ordered[V]) find(key string) (b, i int, ok bool) {
	b = sort.Search(len(m.blocks), func(b int) bool { return m.blocks[b].keys[0] > key }) - 1
	if b < 0 {
		return 0, 0, false
	}
	i, ok = slices.BinarySearch(m.blocks[b].keys, key)
	return b, i, ok
}

func (m *ordered[V]) get(key string) (v V, ok bool) {
	if b, i, ok := m.find(key); ok {
		return m.blocks[b].values[i], true
	}
	return v, false
}

func (m *ordered[V]) set(key string, v V) {
	b, i, ok := m.find(key)
	if ok {
		m.blocks[b].values[i] = v
		return
	}
	m.count++
	if len(m.blocks) == 0 {
		m.blocks = []*block[V]{{keys: []string{key}, values: []V{v}}}
		return
	}
	k := m.blocks[b]
	k.keys = slices.Insert(k.keys, i, key)
	k.values = slices.Insert(k.values, i, v)
	if len(k.keys) > blockSize {
		m.split(b)
	}
}

func (m *ordered[V]) split(b int) {
	k, half := m.blocks[b], blockSize/2
	if b == len(m.blocks)-1 {
		half = blockSize // appends in order leave full blocks behind
	}
	right := &block[V]{slices.Clone(k.keys[half:]), slices.Clone(k.values[half:])}
	clear(k.values[half:])
	clear(k.keys[half:])
	k.keys, k.values = k.keys[:half], k.values[:half]
	m.blocks = slices.Insert(m.blocks, b+1, right)
}

func (m *ordered[V]) remove(key string) {
	b, i, ok := m.find(key)
	if !ok {
		return
	}
	m.count--
	k := m.blocks[b]
	k.keys, k.values = slices.Delete(k.keys, i, i+1), slices.Delete(k.values, i, i+1)
	if len(k.keys) == 0 {
		m.blocks = slices.Delete(m.blocks, b, b+1)
	}
}

// from walks the keys at or after key. The map must not change meanwhile.
func (m *ordered[V]) from(key string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		b, i, _ := m.find(key)
		for ; b < len(m.blocks); b, i = b+1, 0 {
			k := m.blocks[b]
			for ; i < len(k.keys); i++ {
				if !yield(k.keys[i], k.values[i]) {
					return
				}
			}
		}
	}
}
