package queen

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// newTransport is made for many parked long polls to few hosts: no limit on
// connections, idle ones kept until shortly before common proxies drop them.
// HTTP/1.1 only: HTTP/2 re-sends requests by itself after a GOAWAY.
func newTransport(roots *x509.CertPool, several bool) *http.Transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	if several { // a caller with little time must still reach the next node
		dialer.Timeout = slow
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 5 * time.Second,
		MaxIdleConnsPerHost: 1024,
		IdleConnTimeout:     55 * time.Second,
		DisableCompression:  true, // Queen sends none; a proxy must not either
		Protocols:           protocols,
	}
}

// readCA reads the authorities of a PEM file; none, which means the system's,
// where no file is named.
func readCA(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read CA file: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read CA file %s: no certificate in it", path)
	}
	return roots, nil
}

// payload is a request body whose buffer goes back to a pool once nobody
// reads it any more: net/http may still be reading after RoundTrip returned.
type payload struct {
	data []byte
	refs atomic.Int32
	free func([]byte) // nil: not pooled
}

func newPayload(data []byte, free func([]byte)) *payload {
	p := &payload{data: data, free: free}
	p.refs.Store(1)
	return p
}

func (p *payload) release() {
	if p != nil && p.refs.Add(-1) == 0 && p.free != nil {
		p.free(p.data)
	}
}

// reader gives one reading of the payload. It is no *bytes.Reader on purpose:
// with those http.NewRequest sets GetBody, and net/http could send the
// request a second time on its own.
func (p *payload) reader() io.ReadCloser {
	p.refs.Add(1)
	return &payloadReader{p: p, rest: p.data}
}

type payloadReader struct {
	mu   sync.Mutex // Close may come while Read runs
	p    *payload   // nil: closed
	rest []byte
}

func (r *payloadReader) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.p == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *payloadReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.p != nil {
		r.p.release()
		r.p, r.rest = nil, nil
	}
	return nil
}

// maxPooled bounds the buffers kept for reuse.
const maxPooled = 8 << 20

// buffer takes an empty buffer from the pool.
func (c *Client) buffer() []byte {
	return (*c.bufs.Get().(*[]byte))[:0]
}

// pooled makes a payload of a buffer that came from buffer.
func (c *Client) pooled(data []byte) *payload {
	return newPayload(data, func(b []byte) {
		if cap(b) <= maxPooled {
			c.bufs.Put(&b)
		}
	})
}
