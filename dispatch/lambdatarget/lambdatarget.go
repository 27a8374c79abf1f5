package lambdatarget

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch"
	"github.com/queenbridge/queenbridge/dispatch/exchange"
)

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
	most      int  // bytes of a payload
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
		event: l.Invoke == bridge.InvokeEvent, most: l.MaxPayload(), timeout: l.Timeout, log: o.Logger,
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

// Send makes one call, and one more at once where certainly nothing reached
// Lambda (exchange.Send).
func (s *Sender) Send(ctx context.Context, r *bridge.Request) bridge.Response {
	if len(r.Body) > s.most {
		err := fmt.Errorf("the payload has %d bytes, Lambda takes %d", len(r.Body), s.most)
		return bridge.Response{Err: err, Class: bridge.FailureTooLarge, Elapsed: 1}
	}
	return exchange.Send(ctx, s.timeout, func(ctx context.Context) (bridge.Response, bool) { return s.once(ctx, r) })
}

// once makes one Invoke. again says that nothing was sent and another try may
// help.
func (s *Sender) once(ctx context.Context, r *bridge.Request) (resp bridge.Response, again bool) {
	c := &call{limit: max(r.Capture, maxAnswer)}
	out, err := s.client.Invoke(withCall(ctx, c), s.input(r))
	if c.status == 0 {
		return c.failure(ctx, err), !c.Sent() && exchange.Retriable(c.err)
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
