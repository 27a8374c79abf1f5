package bridge_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
)

func TestPartitionName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 200)
	for _, tt := range []struct{ value, want string }{
		{"acme/app", "acme/app"},
		{long, long},
		{long + "a", "sha256:"},
		{"a\x00", "sha256:"},
		{"ü", "sha256:"},
	} {
		got := bridge.PartitionName(tt.value)
		if tt.value == tt.want && got != tt.want || tt.value != tt.want && (!strings.HasPrefix(got, "sha256:") || len(got) != 71) {
			t.Errorf("PartitionName(%q) = %q", tt.value, got)
		}
	}
}

func TestParseValueForm(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bridge.ValueForm{
		"body:a.b": {Kind: "body", Name: "a.b"}, "header:X-A": {Kind: "header", Name: "X-A"},
		"query:q": {Kind: "query", Name: "q"}, "literal:a:b": {Kind: "literal", Name: "a:b"},
	} {
		if got, ok := bridge.ParseValueForm(s); !ok || got != want {
			t.Errorf("ParseValueForm(%q) = %+v, %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "body", "body:", "cookie:a", "Body:a", ":a"} {
		if _, ok := bridge.ParseValueForm(s); ok {
			t.Errorf("ParseValueForm(%q) succeeds", s)
		}
	}
}

func TestHasReply(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		resp bridge.Response
		want bool
	}{
		{bridge.Response{Status: 200, Body: []byte(" ")}, true},
		{bridge.Response{Status: 500, Body: []byte("x")}, true},
		{bridge.Response{Status: 200}, false},
		{bridge.Response{Status: 202, Body: []byte("x")}, false},
		{bridge.Response{Status: 204, Body: []byte("x")}, false},
		{bridge.Response{Err: http.ErrHandlerTimeout, Body: []byte("x")}, false},
	} {
		if got := tt.resp.HasReply(); got != tt.want {
			t.Errorf("HasReply(%d %q) = %v", tt.resp.Status, tt.resp.Body, got)
		}
	}
}
