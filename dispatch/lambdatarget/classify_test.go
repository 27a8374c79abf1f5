package lambdatarget_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/lambdatarget"
)

// decide is what becomes of the third of twelve attempts.
func decide(t *testing.T, resp bridge.Response) bridge.Outcome {
	t.Helper()
	p, problems := bridge.NewPolicy(bridge.Route{
		Retry:    bridge.RetryPolicy{MaxAttempts: 12, MaxAge: time.Hour, Backoff: []time.Duration{time.Second}, Jitter: bridge.JitterNone},
		Outcomes: bridge.Outcomes{Success: []string{"2xx"}}, // the default
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return bridge.Decide(resp, bridge.Facts{Attempt: 3}, p, time.Now(), func() float64 { return 0 })
}

// TestEveryErrorOfLambdaIsClassified: dispatch.md §2.3, by type and status, with
// exactly one request each.
func TestEveryErrorOfLambdaIsClassified(t *testing.T) {
	t.Parallel()
	const (
		hold, retry, dead = bridge.Hold, bridge.Retry, bridge.Dead
		c4, c5            = bridge.FailureHTTP4xx, bridge.FailureHTTP5xx
		none, toward      = bridge.ScopeOutcome, bridge.ScopeTarget
		broken            = bridge.ScopeBroken
	)
	for _, tt := range []struct {
		status    int
		errorType string
		kind      bridge.OutcomeKind
		class     bridge.FailureClass
		scope     bridge.FailureScope
	}{
		// throttle
		{429, "TooManyRequestsException", hold, bridge.FailureThrottled, none},
		{429, "SomethingNewException", hold, bridge.FailureThrottled, none},
		// transient
		{500, "ServiceException", retry, c5, toward},
		{502, "EC2ThrottledException", retry, c5, toward}, {502, "EC2UnexpectedException", retry, c5, toward},
		{502, "ENILimitReachedException", retry, c5, toward}, {502, "ENINotReadyException", retry, c5, toward},
		{502, "SubnetIPAddressLimitReachedException", retry, c5, toward}, {502, "ResourceNotReadyException", retry, c5, toward},
		{502, "KMSThrottlingException", retry, c5, toward}, {503, "ServiceUnavailableException", retry, c5, toward}, {504, "", retry, c5, toward},
		{410, "EFSIOException", retry, c4, toward}, {408, "EFSMountConnectivityException", retry, c4, toward},
		{403, "EFSMountFailureException", retry, c4, toward}, {408, "EFSMountTimeoutException", retry, c4, toward},
		{400, "SnapStartException", retry, c4, toward}, {409, "SnapStartNotReadyException", retry, c4, toward}, {408, "SnapStartTimeoutException", retry, c4, toward},
		{409, "ResourceConflictException", retry, c4, toward},
		// broken
		{403, "AccessDeniedException", hold, c4, broken}, {403, "UnrecognizedClientException", hold, c4, broken}, {403, "ExpiredTokenException", hold, c4, broken},
		{404, "ResourceNotFoundException", hold, c4, broken}, {400, "InvalidParameterValueException", hold, c4, none},
		{502, "EC2AccessDeniedException", hold, c5, broken}, {502, "KMSAccessDeniedException", hold, c5, broken},
		{502, "KMSDisabledException", hold, c5, broken}, {502, "KMSInvalidStateException", hold, c5, broken}, {502, "KMSNotFoundException", hold, c5, broken},
		{502, "InvalidRuntimeException", hold, c5, broken}, {502, "InvalidZipFileException", hold, c5, broken},
		{502, "InvalidSubnetIDException", hold, c5, broken}, {502, "InvalidSecurityGroupIDException", hold, c5, broken},
		{400, "RecursiveInvocationException", hold, c4, broken}, {301, "", hold, bridge.FailureRedirect, none},
		// message
		{413, "RequestTooLargeException", dead, bridge.FailureTooLarge, none}, {413, "", dead, bridge.FailureTooLarge, none},
		{413, "SerializedRequestEntityTooLargeException", dead, bridge.FailureTooLarge, none},
		{400, "InvalidRequestContentException", dead, c4, none}, {415, "UnsupportedMediaTypeException", dead, c4, none},
	} {
		t.Run(fmt.Sprint(tt.status, " ", tt.errorType), func(t *testing.T) {
			t.Parallel()
			f := serveLambda(t, always(fakeAnswer{status: tt.status, errorType: tt.errorType}))
			resp := newSender(t, target(f.url, nil)).Send(within(t, 10*time.Second), request(`{}`))
			out := decide(t, resp)
			if out.Kind != tt.kind || out.Failure.Class != tt.class || out.Failure.Status != tt.status || out.DisableTarget {
				t.Errorf("%+v, want %s %s", out, tt.kind, tt.class)
			}
			if scope := resp.Scope(); scope != tt.scope {
				t.Errorf("scope %q, want %q", scope, tt.scope)
			}
			if !strings.Contains(out.Failure.Error, tt.errorType) || !resp.Sent {
				t.Errorf("error %q, sent %v", out.Failure.Error, resp.Sent)
			}
			if n := len(f.seen()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

// TestAThrottleHoldsTheTargetAsLongAsLambdaAsks, whatever its reason.
func TestAThrottleHoldsTheTargetAsLongAsLambdaAsks(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{
		"ConcurrentInvocationLimitExceeded", "ReservedFunctionConcurrentInvocationLimitExceeded", "FunctionInvocationRateLimitExceeded",
		"ReservedFunctionInvocationRateLimitExceeded", "CallerRateLimitExceeded", "ConcurrentSnapshotCreateLimitExceeded", "ANewReason",
	} {
		f := serveLambda(t, always(fakeAnswer{
			status: 429, errorType: "TooManyRequestsException", header: map[string]string{"Retry-After": "90"},
			body: `{"Reason":"` + reason + `","Type":"User","message":"Rate Exceeded."}`,
		}))
		out := decide(t, newSender(t, target(f.url, nil)).Send(within(t, 10*time.Second), request(`{}`)))
		want := bridge.Outcome{
			Kind: bridge.Hold, Delay: 90 * time.Second, PauseTarget: 90 * time.Second,
			Failure: bridge.Failure{Class: bridge.FailureThrottled, Status: 429, Error: "answered 429 TooManyRequestsException: " + reason},
		}
		if diff := cmp.Diff(want, out); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}

// TestAFailedFunctionIsNoSuccess: Lambda answers 200 for it (user-problems:
// "failed invocations counted as success"). Any value of the header counts.
func TestAFailedFunctionIsNoSuccess(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ value, payload, want string }{
		{"Unhandled", `{"errorMessage":"no such\nkey","errorType":"KeyError","stackTrace":["secret"]}`, "KeyError: no such key"},
		{"Handled", `{"errorMessage":"only a message"}`, "only a message"},
		{"Anything", `{"stackTrace":["x"],"errorType":"OnlyAType"}`, "OnlyAType"},
		{"Unhandled", `{"errorType":"Sandbox.Timedout","errorMessage":"RequestId: 1 Error: Task timed out after 2.00 seconds"}`, "Sandbox.Timedout: RequestId: 1 Error: Task timed out after 2.00 seconds"},
		{"Unhandled", `{"errorType":7,"errorMessage":{"a":1}}`, "the function failed (Unhandled)"},
		{"Unhandled", `"a string"`, "the function failed (Unhandled)"},
		{"Unhandled", ``, "the function failed (Unhandled)"},
		{"Unhandled", `{"errorType":"Long","errorMessage":"m","stackTrace":["` + strings.Repeat("x", 100<<10) + `"]}`, "Long: m"},
		{"Unhandled", `{"errorMessage":"` + strings.Repeat("x", 1000) + `"}`, strings.Repeat("x", 256)},
	} {
		f := serveLambda(t, always(fakeAnswer{status: 200, functionError: tt.value, body: tt.payload}))
		resp := newSender(t, target(f.url, nil)).Send(within(t, 10*time.Second), request(`{}`))
		out := decide(t, resp)
		if out.Kind != bridge.Retry || out.Failure.Class != bridge.FailureFunctionError || out.Failure.Error != tt.want {
			t.Errorf("%s %.80s: %+v, want a counted failure %q", tt.value, tt.payload, out, tt.want)
		}
		if string(resp.Body) != tt.payload[:min(len(tt.payload), 64<<10)] || len(f.seen()) != 1 {
			t.Errorf("%s %.80s: body %.80s, %d requests", tt.value, tt.payload, resp.Body, len(f.seen()))
		}
	}
}

// TestOneAttemptIsOneRequest: the SDK by itself makes three of a throttle, a
// failure of Lambda and a lost connection (user-problems: "POST executed twice").
func TestOneAttemptIsOneRequest(t *testing.T) {
	t.Parallel()
	eager := func(ctx context.Context, region, role string) (aws.Config, error) {
		c, err := awsConfig(ctx, region, role)
		c.RetryMaxAttempts, c.RetryMode = 5, aws.RetryModeAdaptive // AWS_MAX_ATTEMPTS, AWS_RETRY_MODE
		return c, err
	}
	for _, tt := range []struct {
		name    string
		answer  fakeAnswer
		attempt bool
	}{
		{"429", fakeAnswer{status: 429, errorType: "TooManyRequestsException"}, false},
		{"500", fakeAnswer{status: 500, errorType: "ServiceException"}, true},
		{"502", fakeAnswer{status: 502}, true}, {"503", fakeAnswer{status: 503}, true}, {"504", fakeAnswer{status: 504}, true},
		{"a lost connection", fakeAnswer{drop: true}, true},
	} {
		f := serveLambda(t, func() func(context.Context, []byte) fakeAnswer {
			first := true
			return func(context.Context, []byte) fakeAnswer {
				if first { // so that the next call goes over a connection in use
					first = false
					return fakeAnswer{status: 200}
				}
				return tt.answer
			}
		}())
		s, err := lambdatarget.New(t.Context(), target(f.url, nil), lambdatarget.Options{Config: eager})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		s.Send(within(t, 10*time.Second), request(`{}`))
		out := decide(t, s.Send(within(t, 10*time.Second), request(`{}`)))
		if n := len(f.seen()) - 1; n != 1 || (out.Kind == bridge.Retry) != tt.attempt {
			t.Errorf("%s: %d requests for one attempt, %+v", tt.name, n, out)
		}
	}
}

// TestALongFunctionRunsOnce: nothing but the attempt's deadline ends a call,
// not after 60 s as in other SDKs, and not before the longest function's 900 s
// (user-problems: "one invoke ran 8×", "4 runs of a > 1 min function").
func TestALongFunctionRunsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeLambda{t: t, answer: func(context.Context, []byte) fakeAnswer {
			time.Sleep(900 * time.Second) // the bubble's clock
			return fakeAnswer{status: 200, body: `"done"`}
		}}
		pipes := pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
		srv := &http.Server{Handler: f}
		go func() { _ = srv.Serve(pipes) }()
		s, err := lambdatarget.New(t.Context(), target("http://lambda.test", func(l *bridge.LambdaTarget) { l.Timeout = 905 * time.Second }),
			lambdatarget.Options{Config: awsConfig, Dial: pipes.dial})
		if err != nil {
			t.Fatal(err)
		}
		resp := s.Send(t.Context(), request(`{}`))
		if resp.Status != 200 || string(resp.Body) != `"done"` || len(f.seen()) != 1 || resp.Elapsed < 900*time.Second {
			t.Errorf("Send = %d %q, %v after %s; %d runs, want 1", resp.Status, resp.Body, resp.Err, resp.Elapsed, len(f.seen()))
		}
		s.Close()
		_ = srv.Close()
	})
}

// pipeListener serves connections in memory: a bubble's clock does not run
// while a socket is waited for.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipeListener) Close() error {
	close(p.closed)
	return nil
}

func (p pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// TestATimeoutHasAnUnknownOutcome: the function may have run, so the attempt
// counts.
func TestATimeoutHasAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	f := serveLambda(t, func(ctx context.Context, _ []byte) fakeAnswer {
		<-ctx.Done()
		return fakeAnswer{status: 200}
	})
	s := newSender(t, target(f.url, func(l *bridge.LambdaTarget) { l.Timeout = 500 * time.Millisecond }))
	resp := s.Send(t.Context(), request(`{}`))
	if out := decide(t, resp); out.Kind != bridge.Retry || out.Failure.Class != bridge.FailureTimeout || !resp.Sent || len(f.seen()) != 1 {
		t.Errorf("Send = %+v, sent %v, %d requests; want a counted timeout", out, resp.Sent, len(f.seen()))
	}
}
