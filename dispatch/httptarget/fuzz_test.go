package httptarget_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/httptarget"
)

// Whatever headers and names an event has, its request can be sent, arrives
// as one request, and carries the body byte for byte.
func FuzzRequest(f *testing.F) {
	f.Add("x-github-event", "push", "application/json", "octo/repo", []byte(`{"a":1}`))
	f.Add("content-length", "5\r\n\r\nGET / HTTP/1.1", "text/plain\r\nx: y", "größe\n", []byte("\x00\xff"))
	f.Add("", "", "", "", []byte{})
	f.Add("transfer-encoding", "chunked", "a\x7fb", " ", []byte("0\r\n\r\n"))
	s, err := httptarget.New(bridge.Target{HTTP: &bridge.HTTPTarget{URL: "http://fn.example/hook"}}, httptarget.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name, value, contentType, partition string, body []byte) {
		r := &bridge.Request{
			DeliveryID: "dlv_x", Attempt: 1, Queue: partition, Partition: partition,
			Headers: []bridge.Header{{Name: name, Value: value}, {Name: "x-fine", Value: "1"}}, ContentType: contentType, Body: body,
		}
		var wire bytes.Buffer
		if err := httptarget.Request(context.Background(), s, r).Write(&wire); err != nil {
			t.Fatalf("the request cannot be sent: %v", err)
		}
		in := bufio.NewReader(&wire)
		got, err := http.ReadRequest(in)
		if err != nil {
			t.Fatalf("the request cannot be read: %v", err)
		}
		text, err := io.ReadAll(got.Body)
		if err != nil || !bytes.Equal(text, body) {
			t.Errorf("body = %q, %v; want %q", text, err, body)
		}
		if got.Host != "fn.example" || got.Header.Get("webhook-id") != "dlv_x" || len(got.Header["Webhook-Id"]) != 1 {
			t.Errorf("host %q, webhook-id %q", got.Host, got.Header["Webhook-Id"])
		}
		if rest, _ := io.ReadAll(in); len(rest) > 0 {
			t.Errorf("%q follows the request", rest)
		}
	})
}

// Whatever a function answers: never more than asked for, and what is not
// called truncated or cut is whole.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("plain"), "", int64(0))
	f.Add([]byte("plain"), "gzip", int64(3))
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x01\x00\x00\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00"), "gzip", int64(100))
	f.Fuzz(func(t *testing.T, body []byte, coding string, capture int64) {
		capture = max(0, min(capture, 1<<20))
		answer := &http.Response{Header: http.Header{"Content-Encoding": {coding}}, Body: io.NopCloser(bytes.NewReader(body))}
		resp := httptarget.ReadAnswer(answer, capture)
		limit := int(capture)
		if capture == 0 {
			limit = 64 << 10
		}
		if len(resp.Body) > limit {
			t.Errorf("%d bytes, want at most %d", len(resp.Body), limit)
		}
		decoded := resp.Header.Get("Content-Encoding") != coding
		if whole := !resp.Truncated && !resp.Cut; whole && !decoded && !bytes.Equal(resp.Body, body) {
			t.Errorf("body %q, want %q", resp.Body, body)
		}
	})
}

func FuzzJWTEnd(f *testing.F) {
	f.Add("a.eyJleHAiOjE3MDAwMDAwMDB9.c")
	f.Add("a.eyJleHAiOjFlMzAwfQ.c")
	f.Add("a.eyJleHAiOi0xfQ.c")
	f.Fuzz(func(t *testing.T, value string) {
		if end := httptarget.JWTEnd(value); !end.IsZero() && (end.Unix() < 0 || end.Year() > 10000) {
			t.Errorf("JWTEnd(%q) = %v", value, end)
		}
	})
}
