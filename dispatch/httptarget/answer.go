package httptarget

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"

	"github.com/queenbridge/queenbridge/bridge"
)

// maxAnswer bounds what is read of an answer's body that nothing needs, in
// bytes: the head for dead letters and logs. A connection with more to read is
// closed.
const maxAnswer = 64 << 10

// readAnswer reads the body of an answer into resp: at most capture bytes, or
// without capture a head. What is lost on the way takes nothing from the
// status, which is known: resp.Cut says so.
//
// We ask for no content coding. An answer that comes with gzip all the same is
// decoded, bounded by its decoded bytes, and loses its Content-Encoding; what
// is no gzip after all stays as it came and, where it was needed, counts as
// cut. Other codings stay as they are, with their header.
func readAnswer(resp *bridge.Response, answer *http.Response, capture int64) {
	limit := capture
	if capture <= 0 {
		limit = maxAnswer
	}
	if answer.Body == http.NoBody {
		return
	}
	if !isGzip(answer.Header) {
		resp.Body, resp.Truncated, resp.Cut = readBounded(answer.Body, limit)
		return
	}
	// The encoded bytes are bounded as well, by little more than what gzip
	// makes of incompressible ones: an endless stream of empty blocks decodes
	// to nothing.
	encoded, more, cut := readBounded(answer.Body, limit+limit/1024+1024)
	decoded, rest, broken := gunzip(encoded, limit)
	if decoded == nil && len(encoded) > 0 {
		resp.Body, resp.Truncated = encoded[:min(int64(len(encoded)), limit)], more
		resp.Cut = cut || capture > 0
		return
	}
	resp.Body, resp.Truncated = decoded, rest || more
	resp.Cut = !resp.Truncated && (cut || broken)
	resp.Header.Del(headerEncoding)
	resp.Header.Del("Content-Length")
}

// gunzip decodes at most limit bytes; nil: this is no gzip.
func gunzip(encoded []byte, limit int64) (decoded []byte, truncated, broken bool) {
	decoder, err := gzip.NewReader(bytes.NewReader(encoded))
	if err != nil {
		return nil, false, false
	}
	return readBounded(decoder, limit)
}

// isGzip says that gzip is the one coding of an answer.
func isGzip(h http.Header) bool {
	codings := h[headerEncoding]
	if len(codings) != 1 {
		return false
	}
	coding := strings.ToLower(strings.TrimSpace(codings[0]))
	return coding == "gzip" || coding == "x-gzip" // RFC 9110 §8.4.1.3
}

// readBounded reads at most limit bytes; truncated says that there are more,
// cut that reading them failed.
func readBounded(r io.Reader, limit int64) (b []byte, truncated, cut bool) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if int64(len(b)) > limit {
		return b[:limit], true, false
	}
	return b, false, err != nil
}
