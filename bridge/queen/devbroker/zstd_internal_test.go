package devbroker

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func pack(t testing.TB, text []byte, options ...zstd.EOption) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, options...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	return w.EncodeAll(text, nil)
}

// What a compressed payload becomes, each line seen on 1.3.0 but where a bound
// of this broker's own is named.
func TestUnpack(t *testing.T) {
	t.Parallel()
	good := pack(t, []byte(`{"a": 1}`))
	checked := bytes.Clone(good)
	checked[len(checked)-1] ^= 0xff
	// Made by the zstd program with --long=30: a window of 1 GiB.
	wide, err := base64.StdEncoding.DecodeString("KLUv/QSg9QAAsCJjMzc0MzM5NjNhYjBiOTNlYjk5NSIBAHO/fzIB81gvYQ==")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, want string
		payload    []byte
	}{
		{"a frame", `{"a": 1}`, good},
		{"not JSON", "hello", pack(t, []byte("hello"))},
		{"two frames", `{"a": 1}22`, append(bytes.Clone(good), pack(t, []byte("22"))...)},
		{"behind a skippable frame", `{"a": 1}`, append([]byte("\x50\x2a\x4d\x18\x02\x00\x00\x00ab"), good...)},
		{"no zstd", "null", []byte("hello")},
		{"nothing", "null", nil},
		{"a frame of nothing", "null", pack(t, nil)},
		{"cut", "null", good[:len(good)-3]},
		{"garbage behind it", "null", append(bytes.Clone(good), "garbage"...)},
		{"wrong checksum", "null", checked},
		{"a window of 1 GiB", "null", wide},
		{"more than this broker unpacks", "null", pack(t, bytes.Repeat([]byte("x"), maxUnpacked+1))},
	} {
		if got := string(unpack(tt.payload, maxUnpacked)); got != tt.want {
			t.Errorf("%s: %.60q, want %q", tt.name, got, tt.want)
		}
	}
	if got := unpack(pack(t, []byte(`"`+strings.Repeat("x", 5_000_000)+`"`)), maxUnpacked); len(got) != 5_000_002 {
		t.Errorf("a frame that expands to 5 MB: %d bytes", len(got))
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(pack(f, []byte(`{"a": 1}`)))
	f.Add(pack(f, bytes.Repeat([]byte("x"), 1<<20), zstd.WithWindowSize(1<<10)))
	f.Add([]byte("\x50\x2a\x4d\x18\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		const limit = 64 << 10
		if got := unpack(payload, limit); len(got) == 0 || len(got) > limit {
			t.Errorf("%d bytes", len(got))
		}
	})
}
