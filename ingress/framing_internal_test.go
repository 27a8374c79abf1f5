package ingress

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// contradicts feeds a stream in pieces of n bytes.
func contradicts(stream string, n int) bool {
	var f framing
	for p := []byte(stream); len(p) > 0; p = p[min(n, len(p)):] {
		f.see(p[:min(n, len(p))])
	}
	return f.contradicts.Load()
}

func TestFramingFindsContradictingLengths(t *testing.T) {
	t.Parallel()
	const (
		plain   = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
		chunked = "\r\nPOST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"
		none    = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
		both    = "POST / HTTP/1.1\nContent-Length: 5\nTransfer-Encoding: chunked\n\n0\r\n\r\n"
		// The names stand in a body, a value and a chunk: no contradiction.
		decoy = "POST / HTTP/1.1\r\nX: Content-Length: 5\r\nContent-Length: 61\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked"
	)
	decoyFixed := strings.Replace(decoy, ": 61", fmt.Sprintf(": %d", len(decoy)-strings.Index(decoy, "\r\n\r\n")-4), 1)
	long := "POST / HTTP/1.1\r\nX-Long: " + strings.Repeat("content-length", 5000) + "\r\n\r\n"
	for name, tc := range map[string]struct {
		stream string
		want   bool
	}{
		"plain": {plain, false}, "chunked": {chunked, false}, "none": {none, false}, "both": {both, true},
		"many": {plain + chunked + none + decoyFixed + long + chunked + plain, false}, "last of many": {plain + chunked + decoyFixed + none + both, true},
		"decoy then both": {decoyFixed + both, true},
		"chunk size":      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", true},
	} {
		for _, n := range []int{1, 2, 3, 7, 64, 1 << 20} {
			if got := contradicts(tc.stream, n); got != tc.want {
				t.Errorf("%s in pieces of %d: contradicts = %v, want %v", name, n, got, tc.want)
			}
		}
	}
}

// FuzzFramingAgreesWithNetHTTP: on a stream that net/http reads to its end,
// the watcher finds a contradiction exactly where there is one.
func FuzzFramingAgreesWithNetHTTP(f *testing.F) {
	f.Add("a: b", "hello", true, 3)
	f.Add("Content-Length: 5", "", true, 1)
	f.Add("X: Transfer-Encoding: chunked", "0\r\n\r\n", false, 64)
	f.Fuzz(func(t *testing.T, header, body string, chunked bool, pieces int) {
		if strings.ContainsAny(header, "\r\n") || pieces < 1 {
			return
		}
		stream := "POST / HTTP/1.1\r\nHost: h\r\n" + header + "\r\n"
		if chunked {
			stream += fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
			if body == "" {
				stream = strings.TrimSuffix(stream, "\r\n0\r\n\r\n") + "\r\n"
			}
		} else {
			stream += fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
		}
		var want bool
		r := bufio.NewReader(strings.NewReader(stream))
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		name, _, _ := strings.Cut(header, ":")
		if len(req.TransferEncoding) > 0 {
			want = strings.EqualFold(name, "content-length") || !chunked
		} else {
			return // nobody asks
		}
		if got := contradicts(stream, pieces); got != want {
			t.Errorf("contradicts(%q) = %v, want %v", stream, got, want)
		}
	})
}

func TestBodyIsReadWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 4095, firstRoom - 1, firstRoom, firstRoom + 1, 3*mebibyte + 7} {
		for _, declared := range []bool{true, false} {
			want := bytes.Repeat([]byte("x"), size)
			r, err := http.NewRequestWithContext(t.Context(), "POST", "http://h/", bytes.NewReader(want))
			if err != nil {
				t.Fatal(err)
			}
			if !declared {
				r.ContentLength = -1
			}
			for limit, ok := range map[int64]bool{int64(size): true, int64(size) + 1: true, int64(size) - 1: false} {
				r.Body = io.NopCloser(bytes.NewReader(want))
				var room atomic.Int64
				room.Store(allBodies)
				body := bodyReader{r: r, w: nilWriter{}, limit: limit, room: &room}
				got, err := body.appendTo(nil)
				if (err == nil) != ok || ok && !bytes.Equal(got, want) {
					t.Errorf("%d bytes (declared %v), limit %d: %d bytes, %v", size, declared, limit, len(got), err)
				}
			}
		}
	}
}

type nilWriter struct{ http.ResponseWriter }
