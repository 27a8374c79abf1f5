package lambdatarget_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/lambdatarget"
)

func decode64(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatalf("%q is no base64: %v", text, err)
	}
	return raw
}

const functionARN = "arn:aws:lambda:ap-south-1:123456789012:function:thumb"

func TestACallNamesFunctionQualifierAndRegion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*bridge.LambdaTarget)
		want   fakeCall
	}{
		{"a name", nil, fakeCall{path: "/2015-03-31/functions/thumb/invocations", kind: "RequestResponse", region: "eu-west-1"}},
		{"an alias", func(l *bridge.LambdaTarget) { l.Qualifier = "live" }, fakeCall{path: "/2015-03-31/functions/thumb/invocations", query: "Qualifier=live", kind: "RequestResponse", region: "eu-west-1"}},
		{"an ARN", func(l *bridge.LambdaTarget) { l.Function, l.Region = functionARN, "" }, fakeCall{path: "/2015-03-31/functions/arn%3Aaws%3Alambda%3Aap-south-1%3A123456789012%3Afunction%3Athumb/invocations", kind: "RequestResponse", region: "ap-south-1"}},
		{"a hand-off", func(l *bridge.LambdaTarget) { l.Invoke = "event" }, fakeCall{path: "/2015-03-31/functions/thumb/invocations", kind: "Event", region: "eu-west-1"}},
	} {
		f := serveLambda(t, always(fakeAnswer{status: 200}))
		if resp := newSender(t, target(f.url, tt.change)).Send(within(t, 10*time.Second), request(`{"a": 1e400}`)); resp.Status != 200 {
			t.Errorf("%s: %d, %v", tt.name, resp.Status, resp.Err)
		}
		tt.want.body = `{"a": 1e400}`
		got := f.seen()[0]
		got.context = ""
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(fakeCall{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestTheFunctionIsToldWhichAttemptItIs(t *testing.T) {
	t.Parallel()
	f := serveLambda(t, always(fakeAnswer{status: 200}))
	s := newSender(t, target(f.url, nil))
	r := request(`{}`)
	s.Send(within(t, 10*time.Second), r)
	want := map[string]string{"webhook-id": "dlv_1", "queen-attempt": "3", "queen-queue": "images", "queen-partition": "album-7", "traceparent": r.Traceparent}
	if diff := cmp.Diff(want, clientContext(t, f.seen()[0].context)); diff != "" {
		t.Errorf("client context (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		queue, partition int
		want             []string
	}{
		{10, 4000, []string{"queen-attempt", "queen-queue", "traceparent", "webhook-id"}},
		{4000, 10, []string{"queen-attempt", "traceparent", "webhook-id"}},
	} {
		r.Queue, r.Partition = strings.Repeat("q", tt.queue), strings.Repeat("\x01", tt.partition)
		s.Send(within(t, 10*time.Second), r)
		calls := f.seen()
		text := calls[len(calls)-1].context
		for _, name := range tt.want {
			if clientContext(t, text)[name] == "" || len(text) > 3583 {
				t.Errorf("with a queue of %d and a partition of %d bytes: %d bytes without %s", tt.queue, tt.partition, len(text), name)
			}
		}
	}
	handOff := newSender(t, target(f.url, func(l *bridge.LambdaTarget) { l.Invoke = "event" }))
	handOff.Send(within(t, 10*time.Second), request(`{}`))
	if calls := f.seen(); calls[len(calls)-1].context != "" {
		t.Error("an asynchronous call carries a client context, which Lambda refuses")
	}
}

// TestAPayloadTooLargeIsNotSent: Lambda would refuse it after it was uploaded.
func TestAPayloadTooLargeIsNotSent(t *testing.T) {
	t.Parallel()
	f := serveLambda(t, always(fakeAnswer{status: 200}))
	for _, tt := range []struct {
		invoke string
		size   int
		sent   bool
	}{
		{"request_response", bridge.MaxLambdaPayload, true}, {"request_response", bridge.MaxLambdaPayload + 1, false},
		{"event", bridge.MaxLambdaEventPayload, true}, {"event", bridge.MaxLambdaEventPayload + 1, false},
	} {
		before := len(f.seen())
		resp := newSender(t, target(f.url, func(l *bridge.LambdaTarget) { l.Invoke = tt.invoke })).Send(within(t, 10*time.Second), request(strings.Repeat("1", tt.size)))
		if sent := len(f.seen()) > before; sent != tt.sent {
			t.Errorf("%s of %d bytes: sent %v, want %v", tt.invoke, tt.size, sent, tt.sent)
		}
		if out := decide(t, resp); !tt.sent && (out.Kind != bridge.Dead || out.Failure.Class != bridge.FailureTooLarge) {
			t.Errorf("%s of %d bytes: %+v, want a dead letter too_large", tt.invoke, tt.size, out)
		}
	}
}

// TestAnswersAreBoundedByWhatIsNeeded: a reply or a report needs all of it,
// anything else a head.
func TestAnswersAreBoundedByWhatIsNeeded(t *testing.T) {
	t.Parallel()
	whole := `"` + strings.Repeat("x", 200<<10) + `"`
	s := newSender(t, target(serveLambda(t, always(fakeAnswer{status: 200, body: whole})).url, nil))
	for _, tt := range []struct {
		capture   int64
		want      int
		truncated bool
	}{
		{0, 64 << 10, true}, {10, 10, true}, {1 << 20, len(whole), false}, {int64(len(whole)), len(whole), false}, {int64(len(whole)) - 1, len(whole) - 1, true},
	} {
		r := request(`{}`)
		r.Capture = tt.capture
		resp := s.Send(within(t, 10*time.Second), r)
		if string(resp.Body) != whole[:tt.want] || resp.Truncated != tt.truncated || resp.Cut || resp.Err != nil {
			t.Errorf("with capture %d: %d bytes, truncated %v, cut %v, %v; want %d, %v", tt.capture, len(resp.Body), resp.Truncated, resp.Cut, resp.Err, tt.want, tt.truncated)
		}
	}
}

// TestACutAnswerKeepsItsStatus: the function ran.
func TestACutAnswerKeepsItsStatus(t *testing.T) {
	t.Parallel()
	f := serveLambda(t, always(fakeAnswer{status: 200, body: `{"batchItemFailures":[]}`, cutAfter: 5, header: map[string]string{"Content-Length": "24"}}))
	resp := newSender(t, target(f.url, nil)).Send(within(t, 10*time.Second), request(`{}`))
	if resp.Status != 200 || !resp.Cut || !resp.Truncated || resp.Err != nil {
		t.Errorf("Send = %d, cut %v, truncated %v, %v; want 200, cut", resp.Status, resp.Cut, resp.Truncated, resp.Err)
	}
}

// TestAStaleConnectionIsNoAttempt: Lambda closed it while it was idle; the call
// is made on another.
func TestAStaleConnectionIsNoAttempt(t *testing.T) {
	t.Parallel()
	f := serveLambda(t, always(fakeAnswer{status: 200, header: map[string]string{"Connection": "close"}}))
	s := newSender(t, target(f.url, nil))
	for range 5 {
		if resp := s.Send(within(t, 10*time.Second), request(`{}`)); resp.Status != 200 {
			t.Errorf("Send = %d, %v", resp.Status, resp.Err)
		}
	}
	if n := len(f.seen()); n != 5 {
		t.Errorf("%d calls of 5", n)
	}
}

// TestAFastAnswerIsWhole: it comes while the transport is still at the end of
// the request, whose body the SDK closes then.
func TestAFastAnswerIsWhole(t *testing.T) {
	t.Parallel()
	whole := `"` + strings.Repeat("x", 1<<20) + `"`
	f := serveLambda(t, always(fakeAnswer{status: 200, body: whole}))
	s, err := lambdatarget.New(t.Context(), target(f.url, nil), lambdatarget.Options{
		Config: awsConfig,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return &lateConn{Conn: conn, reads: make(chan struct{}, 1000)}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	r := request(`{}`)
	r.Capture = 2 << 20
	resp := s.Send(within(t, 10*time.Second), r)
	if string(resp.Body) != whole || resp.Cut || resp.Truncated {
		t.Errorf("Send = %d, %d bytes of %d, cut %v, %v", resp.Status, len(resp.Body), len(whole), resp.Cut, resp.Err)
	}
}

// lateConn sends a request's payload and comes back from it only once the
// answer's body is being read: its third read.
type lateConn struct {
	net.Conn
	reads chan struct{}
}

func (c *lateConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.reads <- struct{}{}
	return n, err
}

func (c *lateConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if string(p) == "{}" {
		for range 3 {
			<-c.reads
		}
	}
	return n, err
}

func TestTheVersionThatRanIsLoggedAtDebug(t *testing.T) {
	t.Parallel()
	f := serveLambda(t, always(fakeAnswer{status: 200, body: `"secret answer"`}))
	var log bytes.Buffer
	s, err := lambdatarget.New(t.Context(), target(f.url, nil), lambdatarget.Options{
		Config: awsConfig, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.Send(within(t, 10*time.Second), request(`"secret payload"`))
	if text := log.String(); !strings.Contains(text, "version=7") || !strings.Contains(text, "delivery=dlv_1") || strings.Contains(text, "secret") {
		t.Errorf("the log is %s", text)
	}
}

func TestASenderNeedsFunctionAndRegion(t *testing.T) {
	t.Parallel()
	o := lambdatarget.Options{Config: awsConfig}
	if _, err := lambdatarget.New(t.Context(), bridge.Target{}, o); err == nil {
		t.Error("New without a function made a Sender")
	}
	_, err := lambdatarget.New(t.Context(), bridge.Target{Lambda: &bridge.LambdaTarget{Function: "thumb"}}, o)
	if err == nil || !strings.Contains(err.Error(), "lambda.region is not known") {
		t.Errorf("New without a region = %v", err)
	}
	o.Config = func(context.Context, string, string) (aws.Config, error) {
		return aws.Config{}, errors.New("no profile")
	}
	if _, err := lambdatarget.New(t.Context(), target("", nil), o); err == nil || !strings.Contains(err.Error(), "no profile") {
		t.Errorf("New without an AWS environment = %v", err)
	}
}

// TestCredentialsAreTheTargetsFault: nothing was sent, no attempt counts.
func TestCredentialsAreTheTargetsFault(t *testing.T) {
	t.Parallel()
	f := serveLambda(t, always(fakeAnswer{status: 200}))
	s, err := lambdatarget.New(t.Context(), target(f.url, nil), lambdatarget.Options{
		Config: func(context.Context, string, string) (aws.Config, error) {
			return aws.Config{Region: "eu-west-1", Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{}, errors.New("the role is gone")
			})}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	resp := s.Send(within(t, 10*time.Second), request(`{}`))
	if out := decide(t, resp); out.Kind != bridge.Hold || !strings.Contains(out.Failure.Error, "the role is gone") || resp.Sent || len(f.seen()) != 0 {
		t.Errorf("Send = %+v, sent %v, %d calls; want a hold", out, resp.Sent, len(f.seen()))
	}
}
