package ingress

import "sync"

// maxPooledBytes bounds the buffers that are kept for the next request: one
// large body must not make every later one cost as much memory.
const maxPooledBytes = 64 << 10

// buffers are byte slices used again and again. Safe for concurrent use.
type buffers struct{ pool sync.Pool }

// get returns an empty buffer.
func (b *buffers) get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return (*p)[:0]
	}
	return nil
}

// put takes a buffer back that nothing refers to any more.
func (b *buffers) put(p []byte) {
	if cap(p) > 0 && cap(p) <= maxPooledBytes {
		b.pool.Put(&p)
	}
}
