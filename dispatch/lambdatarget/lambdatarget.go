package lambdatarget

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch"
)

// The sizes of payloads that Lambda takes, in bytes (its quotas: 6 MB for a
// synchronous call, 1 MB for an asynchronous one).
const (
	MaxPayload      = 6 << 20
	MaxEventPayload = 1 << 20
)

// invokeEvent is the asynchronous kind of call (config.md, lambda.invoke).
const invokeEvent = "event"

// Options are what a Sender needs besides its target.
type Options struct {
	// Config yields the AWS configuration of a region, with the credentials of
	// a role where assumeRole is not empty; an empty region is the
	// environment's. Required; it must call nobody.
	Config func(ctx context.Context, region, assumeRole string) (aws.Config, error)
	// Dial opens the connections; it may refuse addresses. Nil means a plain
	// dialer with keep-alive.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Logger gets the version that ran, at debug. Nil: nothing is logged.
	Logger *slog.Logger
}

// Sender calls one Lambda function. Safe for concurrent use.
type Sender struct {
	client    *lambda.Client
	transport *transport
	function  string
	qualifier *string
	event     bool // asynchronous
	timeout   time.Duration
	log       *slog.Logger
}

var _ dispatch.Sender = (*Sender)(nil)

// New makes the Sender of a target that has Lambda set; ctx is only used to
// read the AWS environment. It dials nobody. The error says what is missing,
// never a secret.
func New(ctx context.Context, t bridge.Target, o Options) (*Sender, error) {
	if t.Lambda == nil || t.Lambda.Function == "" {
		return nil, errors.New("lambda.function is required")
	}
	l := *t.Lambda
	cfg, err := o.Config(ctx, region(l), l.AssumeRole)
	if err != nil {
		return nil, fmt.Errorf("lambda: %w", err)
	}
	if cfg.Region == "" {
		return nil, errors.New("lambda.region is not known: write it, name the function by its ARN, or set AWS_REGION")
	}
	s := &Sender{
		transport: newTransport(o.Dial, t.Concurrency), function: l.Function,
		event: l.Invoke == invokeEvent, timeout: l.Timeout, log: o.Logger,
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if l.Qualifier != "" {
		s.qualifier = &l.Qualifier
	}
	s.client = lambda.NewFromConfig(cfg, func(options *lambda.Options) {
		// The SDK's retryer makes three calls of one on 429, 5xx and a lost
		// connection (measured): the function would run three times, and no
		// attempt would be counted.
		options.Retryer, options.RetryMaxAttempts = aws.NopRetryer{}, 0
		options.HTTPClient = s.transport
		if l.Endpoint != "" {
			options.BaseEndpoint = &l.Endpoint
		}
	})
	return s, nil
}

// Send makes one call. Where certainly nothing reached Lambda it tries once
// more within a second (dispatch.md §4.5): a stale idle connection, a refused
// one.
func (s *Sender) Send(ctx context.Context, r *bridge.Request) bridge.Response {
	begun := time.Now()
	if most := s.maxPayload(); len(r.Body) > most {
		err := fmt.Errorf("the payload has %d bytes, Lambda takes %d", len(r.Body), most)
		return bridge.Response{Err: err, Class: bridge.FailureTooLarge, Elapsed: time.Since(begun)}
	}
	if deadline, ok := ctx.Deadline(); s.timeout > 0 && (!ok || time.Until(deadline) > s.timeout) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.timeout)
		defer cancel()
	}
	resp, again := s.once(ctx, r)
	if again && time.Since(begun) < quickRetry/2 && pause(ctx, quickRetry/4) {
		resp, _ = s.once(ctx, r)
	}
	resp.Elapsed = max(time.Since(begun), 1)
	return resp
}

// quickRetry bounds the time lost to the one retry in place.
const quickRetry = time.Second

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Sender) maxPayload() int {
	if s.event {
		return MaxEventPayload
	}
	return MaxPayload
}

// once makes one Invoke. again says that nothing was sent and another try may
// help.
func (s *Sender) once(ctx context.Context, r *bridge.Request) (resp bridge.Response, again bool) {
	c := &call{limit: max(r.Capture, maxAnswer)}
	out, err := s.client.Invoke(withCall(ctx, c), s.input(r))
	if c.status == 0 {
		return c.failure(ctx, err), !c.sent() && retriable(c.err)
	}
	resp = c.answer(out, err)
	resp.Body, resp.Truncated = head(resp.Body, r.Capture, c.truncated)
	if out != nil && out.ExecutedVersion != nil {
		s.log.LogAttrs(ctx, slog.LevelDebug, "function invoked",
			slog.String("delivery", r.DeliveryID), slog.String("version", *out.ExecutedVersion))
	}
	return resp, false
}

func (s *Sender) input(r *bridge.Request) *lambda.InvokeInput {
	in := &lambda.InvokeInput{FunctionName: &s.function, Qualifier: s.qualifier, Payload: r.Body}
	if s.event {
		in.InvocationType = types.InvocationTypeEvent
		return in
	}
	in.InvocationType = types.InvocationTypeRequestResponse
	in.ClientContext = clientContext(r)
	return in
}

// Close drops idle connections. Calls under way are not disturbed.
func (s *Sender) Close() { s.transport.CloseIdleConnections() }

// retriable says that the same request may well get through at once: the
// connection was refused, reset, or closed while it was idle.
func retriable(err error) bool {
	for _, one := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, errClosed, net.ErrClosed} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}
