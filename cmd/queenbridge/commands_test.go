package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/signing"
)

// TestEveryHandshakeHasANote: and no note is for a handshake that is not there.
func TestEveryHandshakeHasANote(t *testing.T) {
	t.Parallel()
	used := make(map[string]bool)
	for _, p := range signing.Presets() {
		for _, name := range p.Handshakes {
			used[name] = true
			if handshakeNotes[name] == "" {
				t.Errorf("%s: handshake %s has no note", p.Name, name)
			}
		}
	}
	for name := range handshakeNotes {
		if !used[name] {
			t.Errorf("note on %s, which no scheme has", name)
		}
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "", time.Second: "1s", 90 * time.Minute: "1h30m", 72 * time.Hour: "72h", 10 * time.Minute: "10m",
		20 * time.Hour: "20h", 1500 * time.Millisecond: "1.5s", time.Hour + time.Second: "1h0m1s",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestURLsOfASource(t *testing.T) {
	t.Parallel()
	tls := bridge.IngressTLS{Cert: "c", Key: "k"}
	for _, tt := range []struct {
		ingress      bridge.IngressConfig
		public       string
		paste, local string
	}{
		{bridge.IngressConfig{Addr: ":8080"}, "", "http(s)://<your host>/in/x", "http://127.0.0.1:8080/in/x"},
		{bridge.IngressConfig{Addr: "0.0.0.0:80"}, "", "http(s)://<your host>/in/x", "http://127.0.0.1:80/in/x"},
		{bridge.IngressConfig{Addr: "[::]:80"}, "", "http(s)://<your host>/in/x", "http://127.0.0.1:80/in/x"},
		{bridge.IngressConfig{Addr: "[::1]:80"}, "", "http(s)://<your host>/in/x", "http://[::1]:80/in/x"},
		{bridge.IngressConfig{Addr: "10.0.0.1:8443", TLS: tls}, "", "https://<your host>/in/x", "https://10.0.0.1:8443/in/x"},
		{bridge.IngressConfig{Addr: ":8080"}, "https://h.example.com/hook", "https://h.example.com/hook", "http://127.0.0.1:8080/in/x"},
	} {
		if got := publicURL(tt.ingress, bridge.Source{Name: "x", PublicURL: tt.public}); got != tt.paste {
			t.Errorf("publicURL(%+v) = %q, want %q", tt.ingress, got, tt.paste)
		}
		if got := ingressURL(tt.ingress, "x"); got != tt.local {
			t.Errorf("ingressURL(%+v) = %q, want %q", tt.ingress, got, tt.local)
		}
	}
}

func TestOptionValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		"v1=": "v1=", "true": true, "false": false, "12": "12", "": "",
		`["a","b"]`: []any{"a", "b"}, `{"unit":"ms","n":1,"f":1.5}`: map[string]any{"unit": "ms", "n": int64(1), "f": 1.5},
	} {
		got, err := optionValue(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("optionValue(%s): %v (-want +got):\n%s", text, err, diff)
		}
	}
	for _, text := range []string{"[", `{"a"`, `["a"] x`} {
		if got, err := optionValue(text); err == nil {
			t.Errorf("optionValue(%s) = %v, want an error", text, got)
		}
	}
}

func TestParseTime(t *testing.T) {
	t.Parallel()
	want := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for _, text := range []string{"1769860800", "2026-01-31T12:00:00Z", "2026-01-31T13:00:00+01:00"} {
		if got, err := parseTime(text); err != nil || !got.Equal(want) {
			t.Errorf("parseTime(%s) = %s, %v", text, got, err)
		}
	}
	if got, err := parseTime("noon"); err == nil {
		t.Errorf("parseTime(noon) = %s, want an error", got)
	}
}

// TestSourceNotes: what is special about a source is said.
func TestSourceNotes(t *testing.T) {
	t.Parallel()
	s := bridge.Source{Name: "x", Queue: "x", Paused: true, OnInvalid: "quarantine", Dedup: "off", AllowIPs: []string{"10.0.0.0/8"}}
	for scheme, want := range map[string]int{"github": 4, "gitea": 5, "square": 5, "telegram": 5, "none": 5} {
		p, _ := signing.Lookup(scheme)
		if got := sourceNotes(s, p); len(got) != want {
			t.Errorf("sourceNotes(%s) = %q, want %d", scheme, got, want)
		}
	}
}
