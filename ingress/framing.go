package ingress

import (
	"bytes"
	"strconv"
	"sync/atomic"
)

// framing follows the requests on one HTTP/1.1 connection as closely as is
// needed to see one header block with both Content-Length and
// Transfer-Encoding. It changes nothing. A connection it cannot follow is one
// that net/http refuses, too.
type framing struct {
	// contradicts is set once and stays: such a connection ends.
	contradicts atomic.Bool

	state   framingState
	line    []byte // start of the current line, of earlier reads
	first   bool   // the next line is a request line
	length  int64  // declared, -1: not
	chunked bool
	left    int64 // bytes of the body, or of the chunk with its line end
}

type framingState uint8

const (
	inHeader framingState = iota
	inBody
	inChunkSize
	inChunk
	inTrailer
	lost // not HTTP/1.1 as we know it
)

// maxFramedLine bounds the start of a line that is kept: the names looked for
// are shorter, and so is any number that fits.
const maxFramedLine = 64

// see takes the next bytes of the connection.
func (f *framing) see(p []byte) {
	for len(p) > 0 && f.state != lost {
		switch f.state {
		case inBody, inChunk:
			n := min(int64(len(p)), f.left)
			p = p[n:]
			if f.left -= n; f.left == 0 {
				f.bodyRead()
			}
		default:
			p = f.seeLine(p)
		}
	}
}

// bodyRead goes on after the last byte of a body or chunk.
func (f *framing) bodyRead() {
	if f.state == inChunk {
		f.state = inChunkSize
		return
	}
	f.nextRequest()
}

func (f *framing) nextRequest() {
	f.state, f.first, f.length, f.chunked = inHeader, false, 0, false
}

// seeLine consumes p up to the end of a line. Of a long line only the start
// is kept.
func (f *framing) seeLine(p []byte) []byte {
	end := bytes.IndexByte(p, '\n')
	part, rest := p, []byte(nil)
	if end >= 0 {
		part, rest = p[:end], p[end+1:]
	}
	if len(f.line) == 0 && end >= 0 {
		f.takeLine(part) // the usual case: no copy
		return rest
	}
	f.line = append(f.line, part[:min(len(part), maxFramedLine-len(f.line))]...)
	if end >= 0 {
		f.takeLine(f.line)
		f.line = f.line[:0]
	}
	return rest
}

func (f *framing) takeLine(line []byte) {
	line = bytes.TrimSuffix(line, []byte("\r"))
	switch f.state {
	case inHeader:
		f.headerLine(line)
	case inChunkSize:
		f.chunkLine(line)
	case inTrailer:
		if len(line) == 0 {
			f.nextRequest()
		}
	}
}

// headerLine reads one line of a request's head. "first" tells the empty lines
// that may stand in front of a request from the one that ends it.
func (f *framing) headerLine(line []byte) {
	switch {
	case len(line) == 0 && !f.first:
		return
	case !f.first:
		f.first, f.length, f.chunked = true, -1, false
		return
	case len(line) == 0:
		f.headerEnd()
		return
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	switch {
	case isName(name, "content-length"):
		n, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 63)
		if err != nil {
			n = -1
		}
		f.length = max(n, 0)
	case isName(name, "transfer-encoding"):
		f.chunked = true
	}
}

// isName compares a field name, in any case.
func isName(b []byte, name string) bool {
	return len(b) == len(name) && bytes.EqualFold(b, []byte(name))
}

func (f *framing) headerEnd() {
	f.first = false
	switch {
	case f.chunked:
		if f.length >= 0 {
			f.contradicts.Store(true)
		}
		f.state = inChunkSize
	case f.length > 0:
		f.state, f.left = inBody, f.length
	default:
		f.nextRequest()
	}
}

// chunkLine reads the size of a chunk; extensions follow a semicolon.
func (f *framing) chunkLine(line []byte) {
	size, _, _ := bytes.Cut(line, []byte(";"))
	n, err := strconv.ParseInt(string(bytes.TrimSpace(size)), 16, 63)
	switch {
	case err != nil || n < 0 || n > 1<<62-2:
		f.state = lost
		f.contradicts.Store(true) // what cannot be followed is not trusted
	case n == 0:
		f.state = inTrailer
	default:
		f.state, f.left = inChunk, n+2
	}
}
