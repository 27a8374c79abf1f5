package dispatch

import (
	"cmp"
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/format"
)

// tracerName is the instrumentation scope of the spans.
const tracerName = "github.com/queenbridge/queenbridge/dispatch"

// maxLinks bounds the links of a call of many events: more the SDK would drop
// by default (its LinkCountLimit).
const maxLinks = 128

// Attributes of a span: names of OpenTelemetry's semantic conventions for
// messaging, functions, HTTP and errors; what they have no name for begins with
// queenbridge.
const (
	attrSystem      = attribute.Key("messaging.system")
	attrOperation   = attribute.Key("messaging.operation.name")
	attrDestination = attribute.Key("messaging.destination.name")
	attrPartition   = attribute.Key("messaging.destination.partition.id")
	attrGroup       = attribute.Key("messaging.consumer.group.name")
	attrMessage     = attribute.Key("messaging.message.id")
	attrBatch       = attribute.Key("messaging.batch.message_count")
	attrProvider    = attribute.Key("faas.invoked_provider")
	attrFunction    = attribute.Key("faas.invoked_name")
	attrRegion      = attribute.Key("faas.invoked_region")
	attrStatus      = attribute.Key("http.response.status_code")
	attrError       = attribute.Key("error.type") // the failure class
	attrRoute       = attribute.Key("queenbridge.route")
	attrTarget      = attribute.Key("queenbridge.target")
	attrAttempt     = attribute.Key("queenbridge.attempt")
	attrOutcome     = attribute.Key("queenbridge.outcome")
)

// asked is what the answer to a request is judged with: the names by which the
// function may report events as failed, and the span of the call.
type asked struct {
	ids  []string
	span span
}

// span traces one call. The zero value traces nothing.
type span struct{ traced trace.Span }

// beginSpan begins the span of a call that is made at once, and lets the
// function's spans join it. It is the root of a trace and linked to the
// producers': one call may have many events, an event many calls, hours apart
// (semantic conventions, Messaging spans). Without a TracerProvider the request
// is left as it is: the event's own traceparent passes through.
func (r *route) beginSpan(req *bridge.Request, events ...format.Item) span {
	if r.d.spans == nil {
		return span{}
	}
	ctx, s := r.d.spans.Start(context.Background(), "attempt "+req.Queue,
		trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithLinks(r.producers(events)...), trace.WithAttributes(r.spanAttributes(req, len(events))...))
	if s.SpanContext().IsValid() {
		carrier := propagation.MapCarrier{}
		propagation.TraceContext{}.Inject(ctx, carrier)
		req.Traceparent = carrier.Get("traceparent")
	}
	return span{s}
}

// producers are links to what made the events, as far as their traceparent
// says so; one that is invalid is ignored, as W3C Trace Context wants it.
func (r *route) producers(events []format.Item) (links []trace.Link) {
	for i := range events {
		if len(links) == maxLinks {
			break
		}
		producer := producerOf(events[i].Event)
		if !producer.IsValid() {
			continue
		}
		id := bridge.DeliveryID(r.cfg.Name, events[i].Delivery.Origin)
		links = append(links, trace.Link{SpanContext: producer, Attributes: []attribute.KeyValue{attrMessage.String(id)}})
	}
	return links
}

// producerOf is the span that made an event.
func producerOf(e *bridge.Event) trace.SpanContext {
	if e.Traceparent == "" {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{"traceparent": e.Traceparent}
	for _, h := range e.Headers {
		if h.Name == "tracestate" {
			carrier["tracestate"] = strings.TrimPrefix(carrier["tracestate"]+","+h.Value, ",") // lines add up
		}
	}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// spanAttributes are what is known of a call before it is made: never a URL, a
// header or a body.
func (r *route) spanAttributes(req *bridge.Request, events int) []attribute.KeyValue {
	attrs := []attribute.KeyValue{
		attrSystem.String("queen"), attrOperation.String("attempt"), attrDestination.String(req.Queue),
		attrGroup.String(r.cfg.Group), attrMessage.String(req.DeliveryID),
		attrRoute.String(r.cfg.Name), attrTarget.String(r.target.name), attrAttempt.Int(req.Attempt),
	}
	if req.Partition != "" {
		attrs = append(attrs, attrPartition.String(req.Partition))
	}
	if events > 1 {
		attrs = append(attrs, attrBatch.Int(events))
	}
	if l := r.target.config().Lambda; l != nil {
		attrs = append(attrs, lambdaAttributes(l.Function, l.Region)...)
	}
	return attrs
}

// lambdaAttributes name a function that is configured by its name, with or
// without an alias, or by an ARN or the end of one.
func lambdaAttributes(function, region string) []attribute.KeyValue {
	if arn := strings.Split(function, ":"); arn[0] == "arn" && len(arn) > 3 {
		region = cmp.Or(arn[3], region)
	}
	if _, name, ok := strings.Cut(function, ":function:"); ok {
		function = name
	}
	function, _, _ = strings.Cut(function, ":")
	attrs := []attribute.KeyValue{attrProvider.String("aws"), attrFunction.String(function)}
	if region != "" {
		attrs = append(attrs, attrRegion.String(region))
	}
	return attrs
}

// end ends the span with what became of the call; of several events, of the
// first one that was not delivered. A failure shows its class alone: its text
// may repeat what the function said.
func (s span) end(resp *bridge.Response, out *bridge.Outcome) {
	if s.traced == nil {
		return
	}
	s.traced.SetAttributes(attrOutcome.String(string(out.Kind)))
	if resp.Status > 0 {
		s.traced.SetAttributes(attrStatus.Int(resp.Status))
	}
	if out.Kind != bridge.Delivered {
		class := cmp.Or(string(out.Failure.Class), string(out.Kind))
		s.traced.SetAttributes(attrError.String(class))
		s.traced.SetStatus(codes.Error, class)
	}
	s.traced.End()
}
