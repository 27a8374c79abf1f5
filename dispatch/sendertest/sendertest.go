package sendertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch"
)

// Function is what a fake function does with the body of one call.
type Function func(ctx context.Context, body []byte) Answer

// Answer is how a fake function answers.
type Answer struct {
	// Status is the answer's status; 0 with Drop.
	Status int
	Body   []byte
	// Drop cuts the connection instead of answering.
	Drop bool
	// Cut cuts the connection after Body, where more of it was promised.
	Cut bool
}

// Maker starts fn and returns a Sender that calls it, both gone when the test
// ends. A nil fn stands for a function that cannot be reached.
type Maker func(t *testing.T, fn Function) dispatch.Sender

// Run tests the Sender that makeSender makes.
func Run(t *testing.T, makeSender Maker) {
	for _, tt := range []struct {
		name string
		test func(*testing.T, Maker)
	}{
		{"every answer is a response", everyAnswer},
		{"the body arrives byte for byte", exactBody},
		{"a large answer is cut", largeAnswer},
		{"a captured answer is whole", captured},
		{"a captured answer has at most as many bytes as asked for", capturedInPart},
		{"an answer that ended too soon is told from a whole one", cut},
		{"an unreachable function is an unsent failure", unreachable},
		{"a cut connection is a sent failure, called once", dropped},
		{"the deadline of the context ends the call", deadline},
		{"a cancelled context ends the call", cancelled},
		{"the request is neither changed nor kept", untouched},
		{"calls at once do not meet", concurrent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.test(t, makeSender)
		})
	}
}

func request(body string) *bridge.Request {
	return &bridge.Request{
		DeliveryID: "dlv_test", Attempt: 1, Queue: "q", Partition: "p",
		Headers:     []bridge.Header{{Name: "x-test", Value: "1"}},
		ContentType: "application/json", Body: []byte(body),
	}
}

func answer(status int) Function {
	return func(context.Context, []byte) Answer { return Answer{Status: status, Body: []byte("ok")} }
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func everyAnswer(t *testing.T, makeSender Maker) {
	for _, status := range []int{200, 204, 302, 400, 404, 410, 429, 500, 503} {
		resp := makeSender(t, answer(status)).Send(within(t, 10*time.Second), request(`{}`))
		if resp.Status != status || resp.Err != nil {
			t.Errorf("Send to a function that answers %d = %d, %v", status, resp.Status, resp.Err)
		}
		if resp.Elapsed <= 0 {
			t.Errorf("Elapsed = %v, want more than 0", resp.Elapsed)
		}
	}
}

func exactBody(t *testing.T, makeSender Maker) {
	var got atomic.Pointer[[]byte]
	s := makeSender(t, func(_ context.Context, body []byte) Answer {
		got.Store(&body)
		return Answer{Status: 200}
	})
	for _, body := range []string{"", "{}", " {\"a\" : 1e400}\n", "\x00\xff\xfe", "emoji 🐝 \\u0000 </"} {
		if resp := s.Send(within(t, 10*time.Second), request(body)); resp.Status != 200 {
			t.Fatalf("Send(%q) = %d, %v", body, resp.Status, resp.Err)
		}
		if string(*got.Load()) != body {
			t.Errorf("the function got %q, want %q", *got.Load(), body)
		}
	}
}

func largeAnswer(t *testing.T, makeSender Maker) {
	large := bytes.Repeat([]byte("x"), 4<<20)
	s := makeSender(t, func(context.Context, []byte) Answer { return Answer{Status: 200, Body: large} })
	resp := s.Send(within(t, 10*time.Second), request(`{}`))
	if resp.Status != 200 || !resp.Truncated || len(resp.Body) > 1<<20 {
		t.Errorf("Send = %d, %d bytes, truncated %v, %v; want 200 and a cut body", resp.Status, len(resp.Body), resp.Truncated, resp.Err)
	}
}

// captured asks for more than what is read of an answer nobody needs.
func captured(t *testing.T, makeSender Maker) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	s := makeSender(t, func(context.Context, []byte) Answer { return Answer{Status: 200, Body: large} })
	for _, capture := range []int64{int64(len(large)), int64(len(large)) + 1, 16 << 20} {
		r := request(`{}`)
		r.Capture = capture
		resp := s.Send(within(t, 10*time.Second), r)
		if resp.Status != 200 || resp.Truncated || resp.Cut || !bytes.Equal(resp.Body, large) {
			t.Errorf("Send with Capture %d = %d, %d bytes, truncated %v, cut %v, %v; want all %d bytes",
				capture, resp.Status, len(resp.Body), resp.Truncated, resp.Cut, resp.Err, len(large))
		}
	}
}

func capturedInPart(t *testing.T, makeSender Maker) {
	s := makeSender(t, func(context.Context, []byte) Answer { return Answer{Status: 200, Body: []byte("0123456789")} })
	for _, capture := range []int64{1, 9} {
		r := request(`{}`)
		r.Capture = capture
		resp := s.Send(within(t, 10*time.Second), r)
		if resp.Status != 200 || !resp.Truncated || resp.Cut || string(resp.Body) != "0123456789"[:capture] {
			t.Errorf("Send with Capture %d = %d, %q, truncated %v, cut %v, %v", capture, resp.Status, resp.Body, resp.Truncated, resp.Cut, resp.Err)
		}
	}
}

// cut allows a Sender that cannot tell the status of such an answer to report
// a failure: the function may have run.
func cut(t *testing.T, makeSender Maker) {
	var calls atomic.Int32
	s := makeSender(t, func(context.Context, []byte) Answer {
		calls.Add(1)
		return Answer{Status: 200, Body: []byte(`{"half":`), Cut: true}
	})
	for _, capture := range []int64{0, 1 << 20} {
		calls.Store(0)
		r := request(`{}`)
		r.Capture = capture
		resp := s.Send(within(t, 10*time.Second), r)
		failed := resp.Err != nil && resp.Sent && resp.Class != ""
		if failed == (resp.Status == 200 && resp.Cut) {
			t.Errorf("Send with Capture %d = %d, cut %v, sent %v, %v; want the status with Cut, or a sent failure", capture, resp.Status, resp.Cut, resp.Sent, resp.Err)
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("the function was called %d times, want once", n)
		}
	}
}

func unreachable(t *testing.T, makeSender Maker) {
	resp := makeSender(t, nil).Send(within(t, 10*time.Second), request(`{}`))
	if resp.Err == nil || resp.Sent || resp.Status != 0 || resp.Class == "" {
		t.Errorf("Send = status %d, sent %v, class %q, %v; want an unsent failure with its class", resp.Status, resp.Sent, resp.Class, resp.Err)
	}
}

func dropped(t *testing.T, makeSender Maker) {
	var calls atomic.Int32
	s := makeSender(t, func(context.Context, []byte) Answer {
		calls.Add(1)
		return Answer{Drop: true}
	})
	resp := s.Send(within(t, 10*time.Second), request(`{}`))
	if resp.Err == nil || !resp.Sent || resp.Class == "" {
		t.Errorf("Send = status %d, sent %v, class %q, %v; want a sent failure", resp.Status, resp.Sent, resp.Class, resp.Err)
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("the function was called %d times, want once: a call that may have run is not repeated", n)
	}
}

func hanging(t *testing.T) Function {
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	return func(ctx context.Context, _ []byte) Answer {
		select {
		case <-end:
		case <-ctx.Done():
		}
		return Answer{Status: 200}
	}
}

func deadline(t *testing.T, makeSender Maker) {
	s := makeSender(t, hanging(t))
	begun := time.Now()
	resp := s.Send(within(t, 500*time.Millisecond), request(`{}`))
	if resp.Err == nil || resp.Class != bridge.FailureTimeout || !resp.Sent {
		t.Errorf("Send = status %d, sent %v, class %q, %v; want a sent timeout", resp.Status, resp.Sent, resp.Class, resp.Err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("Send returned after %v, with a deadline of 500ms", took)
	}
}

func cancelled(t *testing.T, makeSender Maker) {
	s := makeSender(t, hanging(t))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	resp := s.Send(ctx, request(`{}`))
	if !errors.Is(resp.Err, context.Canceled) {
		t.Errorf("Send = status %d, %v; want the end of the context", resp.Status, resp.Err)
	}
}

func untouched(t *testing.T, makeSender Maker) {
	s := makeSender(t, answer(200))
	r, want := request(`{"a":1}`), request(`{"a":1}`)
	s.Send(within(t, 10*time.Second), r)
	same := slices.Equal(r.Headers, want.Headers) && bytes.Equal(r.Body, want.Body) &&
		r.ContentType == want.ContentType && r.DeliveryID == want.DeliveryID
	if !same {
		t.Errorf("Send changed the request to %+v", r)
	}
	clear(r.Body) // the caller may use it again; -race tells if it was kept
}

func concurrent(t *testing.T, makeSender Maker) {
	s := makeSender(t, func(_ context.Context, body []byte) Answer {
		return Answer{Status: 200, Body: slices.Clone(body)}
	})
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			body := fmt.Sprintf(`{"n":%d}`, i)
			resp := s.Send(within(t, 10*time.Second), request(body))
			if string(resp.Body) != body {
				t.Errorf("call %d was answered %q, %v", i, resp.Body, resp.Err)
			}
		})
	}
	wg.Wait()
}
