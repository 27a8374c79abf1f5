package queentest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// patientTransport waits out rate limits: only the cases about them use the
// bare one.
type patientTransport struct{ next http.RoundTripper }

func (p *patientTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	for {
		try := r.Clone(r.Context())
		if r.ContentLength > 0 {
			try.Body = io.NopCloser(bytes.NewReader(body))
		}
		res, err := p.next.RoundTrip(try)
		if err != nil || res.StatusCode != http.StatusTooManyRequests {
			return res, err
		}
		_ = res.Body.Close()
		select {
		case <-time.After(100 * time.Millisecond):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

// reply is a raw answer.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (r reply) String() string { return fmt.Sprintf("%d %s", r.status, cut(r.body)) }

func cut(b []byte) string {
	if len(b) > 600 {
		return string(b[:600]) + "…"
	}
	return string(b)
}

// send makes a raw request. body is nil, a string sent as it stands, or
// anything else as JSON.
func (k *kit) send(method, path string, body any) reply {
	k.Helper()
	return k.sendBy(k.http, method, path, body)
}

func (k *kit) sendBy(transport http.RoundTripper, method, path string, body any) reply {
	k.Helper()
	return k.sendHeader(transport, method, path, body, nil)
}

// sendWith is send with a header.
func (k *kit) sendWith(method, path, body, name, value string) reply {
	k.Helper()
	return k.sendHeader(k.http, method, path, body, http.Header{name: {value}})
}

func (k *kit) sendHeader(transport http.RoundTripper, method, path string, body any, header http.Header) reply {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), 40*time.Second)
	defer cancel()
	var in io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		k.must(err)
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, k.broker.URL+path, in)
	k.must(err)
	for name, values := range header {
		req.Header[name] = values
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Close = req.ContentLength > 1<<20 // a broker that refuses it may drop the connection
	res, err := transport.RoundTrip(req)
	k.must(err)
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	k.must(err)
	return reply{res.StatusCode, res.Header, out}
}

// object decodes an answer that must have the status and be an object.
func (k *kit) object(r reply, status int) obj {
	k.Helper()
	var out obj
	k.decode(r, status, &out)
	return out
}

// list decodes an answer that must have the status and be an array of objects.
func (k *kit) list(r reply, status int) []obj {
	k.Helper()
	var out []obj
	k.decode(r, status, &out)
	return out
}

func (k *kit) decode(r reply, status int, out any) {
	k.Helper()
	if r.status != status {
		k.Fatalf("answer %v, want status %d", r, status)
	}
	if err := json.Unmarshal(r.body, out); err != nil {
		k.Fatalf("answer %v: %v", r, err)
	}
	if got := r.header.Get("Content-Type"); got != "application/json" {
		k.Errorf("content type %q", got)
	}
}
