package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/dispatch"
)

// producer is the traceparent of events.
const producer = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// withSpans is a dispatcher's configuration whose spans end up in the exporter.
func withSpans() (*tracetest.InMemoryExporter, func(*dispatch.Config)) {
	spans := tracetest.NewInMemoryExporter()
	return spans, func(c *dispatch.Config) {
		c.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSampler(sdktrace.AlwaysSample()))
	}
}

// pushEvents pushes events of ours to one partition; the transaction ids are
// their bodies.
func (k *kit) pushEvents(traceparent string, headers []bridge.Header, bodies ...string) {
	k.Helper()
	items := make([]queen.Item, len(bodies))
	for i, body := range bodies {
		e := bridge.Event{ID: body, Source: "s", Received: time.Now(), Class: bridge.ClassNone, Headers: headers, Body: []byte(body), Traceparent: traceparent}
		items[i] = queen.Item{Queue: "q", Partition: "p", TransactionID: body, Payload: e.AppendPayload(nil)}
	}
	if _, err := k.client.Push(k.Context(), items); err != nil {
		k.Fatalf("push: %v", err)
	}
}

// attributes of a span or link, as text.
func attributes(all []attribute.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range all {
		m[string(a.Key)] = a.Value.String()
	}
	return m
}

// traceparentOf is how a span is told to a function (W3C Trace Context).
func traceparentOf(s trace.SpanContext) string {
	return fmt.Sprintf("00-%s-%s-%s", s.TraceID(), s.SpanID(), s.TraceFlags())
}

func TestEachAttemptIsASpanLinkedToItsProducer(t *testing.T) {
	t.Parallel()
	eachOrdering(t, func(t *testing.T, ordering bridge.Ordering) {
		inBubble(t, nil, func(k *kit) {
			spans, on := withSpans()
			k.fn.statuses(500)
			r := routeOf(ordering)
			k.start(on, r)
			k.pushEvents(producer, []bridge.Header{{Name: "tracestate", Value: "congo=t61rcWkgMzE"}, {Name: "tracestate", Value: "rojo=1"}}, "x")
			k.wait(time.Minute)
			got, calls := spans.GetSpans(), k.fn.all()
			if len(got) != 2 || len(calls) != 2 {
				t.Fatalf("%d spans of %d calls, want 2 of 2", len(got), len(calls))
			}
			for i, s := range got {
				want := map[string]string{
					"messaging.system": "queen", "messaging.operation.name": "attempt", "messaging.destination.name": "q",
					"messaging.destination.partition.id": "p", "messaging.consumer.group.name": "r", "messaging.message.id": calls[i].DeliveryID,
					"queenbridge.route": "r", "queenbridge.target": "fn", "queenbridge.attempt": "1",
					"queenbridge.outcome": "retry", "error.type": "http_5xx", "http.response.status_code": "500",
				}
				status := sdktrace.Status{Code: codes.Error, Description: "http_5xx"}
				if i == 1 {
					delete(want, "error.type")
					want["queenbridge.attempt"], want["queenbridge.outcome"], want["http.response.status_code"] = "2", "delivered", "200"
					status = sdktrace.Status{}
				}
				if d := cmp.Diff(want, attributes(s.Attributes)); d != "" {
					t.Errorf("attributes of span %d (-want +got):\n%s", i, d)
				}
				if s.Name != "attempt q" || s.SpanKind != trace.SpanKindClient || s.Parent.IsValid() || s.Status != status {
					t.Errorf("span %d: %q, kind %v, parent %v, status %+v", i, s.Name, s.SpanKind, s.Parent, s.Status)
				}
				if calls[i].Traceparent != traceparentOf(s.SpanContext) {
					t.Errorf("call %d has traceparent %q, want that of its span %q", i, calls[i].Traceparent, traceparentOf(s.SpanContext))
				}
				if len(s.Links) != 1 || traceparentOf(s.Links[0].SpanContext) != producer ||
					s.Links[0].SpanContext.TraceState().String() != "congo=t61rcWkgMzE,rojo=1" {
					t.Errorf("links of span %d = %+v, want one to the producer, with its state", i, s.Links)
				}
				if !slices.Contains(calls[i].Headers, bridge.Header{Name: "tracestate", Value: "congo=t61rcWkgMzE"}) {
					t.Errorf("tracestate is not passed on: %+v", calls[i].Headers)
				}
			}
			if got[0].SpanContext.TraceID() == got[1].SpanContext.TraceID() {
				t.Error("two attempts share a trace")
			}
			k.settledAll(r)
		})
	})
}

// TestTheLastSpanSaysThatItsDeliveryIsDead, and no span says more of a failure
// than its class.
func TestTheLastSpanSaysThatItsDeliveryIsDead(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		spans, on := withSpans()
		k.fn.answers(func(context.Context, call) bridge.Response {
			return bridge.Response{Err: errors.New("post https://fn/?token=s3cret: reset"), Class: bridge.FailureConnect, Sent: true, Body: []byte("s3cret")}
		})
		r := testRoute("r", "q")
		r.Retry.MaxAttempts = 2
		k.start(on, r)
		k.pushEvents("", nil, "x")
		k.wait(time.Minute)
		var got []string
		for _, s := range spans.GetSpans() {
			a := attributes(s.Attributes)
			got = append(got, a["queenbridge.outcome"]+" "+s.Status.Description)
			if text := fmt.Sprint(a, s.Status, s.Events, s.Links); strings.Contains(text, "s3cret") {
				t.Errorf("a span shows what failed: %s", text)
			}
			if len(s.Links) != 0 {
				t.Errorf("links = %+v of an event without a producer", s.Links)
			}
		}
		if d := cmp.Diff([]string{"retry connect", "dead exhausted"}, got); d != "" {
			t.Errorf("outcomes (-want +got):\n%s", d)
		}
	})
}

func TestABatchIsOneSpanWithALinkForEachEvent(t *testing.T) {
	t.Parallel()
	eachOrdering(t, func(t *testing.T, ordering bridge.Ordering) {
		inBubble(t, nil, func(k *kit) {
			spans, on := withSpans()
			r := routeOf(ordering)
			r.Batch = bridge.RouteBatch{Size: 200, Window: time.Second}
			bodies := make([]string, 150)
			for i := range bodies {
				bodies[i] = fmt.Sprint(i)
			}
			k.pushEvents("no trace", nil, "first")
			k.pushEvents(producer, nil, bodies...)
			k.start(on, r)
			k.wait(time.Minute)
			got := spans.GetSpans()
			if len(got) != 1 || len(k.fn.all()) != 1 {
				t.Fatalf("%d spans of %d calls, want one", len(got), len(k.fn.all()))
			}
			a := attributes(got[0].Attributes)
			if a["messaging.batch.message_count"] != "151" || a["messaging.message.id"] != k.fn.all()[0].DeliveryID {
				t.Errorf("attributes = %v", a)
			}
			ids := map[string]bool{}
			for _, l := range got[0].Links {
				ids[attributes(l.Attributes)["messaging.message.id"]] = true
				if traceparentOf(l.SpanContext) != producer {
					t.Errorf("link to %v", l.SpanContext)
				}
			}
			if len(got[0].Links) != 128 || len(ids) != 128 {
				t.Errorf("%d links to %d deliveries, want 128", len(got[0].Links), len(ids))
			}
			if c := k.fn.all()[0]; c.Traceparent != traceparentOf(got[0].SpanContext) {
				t.Errorf("traceparent = %q", c.Traceparent)
			}
		})
	})
}

// TestABatchInPartsIsASpanForEachCall: the halves of a batch that failed as a
// whole, until the culprit is alone.
func TestABatchInPartsIsASpanForEachCall(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		spans, on := withSpans()
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			if strings.Contains(c.body, `bad`) {
				return bridge.Response{Status: 422}
			}
			return bridge.Response{Status: 200}
		})
		k.pushEvents(producer, nil, "a", "b", "bad", "c")
		k.start(on, batchRoute(4, time.Second))
		k.wait(time.Minute)
		got := map[string]int{}
		for _, s := range spans.GetSpans() {
			got[fmt.Sprint(len(s.Links), " ", attributes(s.Attributes)["queenbridge.outcome"])]++
		}
		want := map[string]int{"4 retry": 1, "2 delivered": 1, "2 retry": 1, "1 dead": 1, "1 delivered": 1}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("links and outcomes of the spans (-want +got):\n%s", d)
		}
		if n := len(k.fn.all()); n != len(spans.GetSpans()) {
			t.Errorf("%d calls, %d spans", n, len(spans.GetSpans()))
		}
	})
}

// TestWithoutATracerTheEventsTraceparentPassesThrough, also where the tracer
// makes no spans: a provider that does nothing.
func TestWithoutATracerTheEventsTraceparentPassesThrough(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*dispatch.Config){
		"no provider":      nil,
		"does nothing":     func(c *dispatch.Config) { c.TracerProvider = noop.NewTracerProvider() },
		"without producer": func(c *dispatch.Config) { c.TracerProvider = noop.NewTracerProvider() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				want := producer
				if name == "without producer" {
					want = ""
				}
				k.start(change, testRoute("r", "q"))
				k.pushEvents(want, nil, "x")
				k.wait(time.Minute)
				if calls := k.fn.all(); len(calls) != 1 || calls[0].Traceparent != want {
					t.Errorf("calls = %+v, want one with traceparent %q", calls, want)
				}
			})
		})
	}
}

// TestSpansThatAreNotSampledTellTheFunction: the flags of its traceparent do.
func TestSpansThatAreNotSampledTellTheFunction(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		spans := tracetest.NewInMemoryExporter()
		k.start(func(c *dispatch.Config) {
			c.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSampler(sdktrace.NeverSample()))
		}, testRoute("r", "q"))
		k.pushEvents(producer, nil, "x")
		k.wait(time.Minute)
		calls := k.fn.all()
		if len(calls) != 1 || calls[0].Traceparent == producer || !strings.HasSuffix(calls[0].Traceparent, "-00") || len(spans.GetSpans()) != 0 {
			t.Errorf("calls = %+v, %d spans; want a traceparent of its own that is not sampled", calls, len(spans.GetSpans()))
		}
	})
}

func TestSpansOfLambdaNameTheFunction(t *testing.T) {
	t.Parallel()
	for function, want := range map[string][2]string{
		"thumb":                       {"thumb", "eu-central-1"},
		"thumb:live":                  {"thumb", "eu-central-1"},
		"myfunction:live":             {"myfunction", "eu-central-1"},
		"123456789012:function:thumb": {"thumb", "eu-central-1"},
		"arn:aws:lambda:eu-west-1:123456789012:function:thumb":      {"thumb", "eu-west-1"},
		"arn:aws:lambda:eu-west-1:123456789012:function:thumb:live": {"thumb", "eu-west-1"},
	} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				spans, on := withSpans()
				k.fn.answers(func(context.Context, call) bridge.Response {
					return bridge.Response{Status: 200, Judged: &bridge.Judgement{Kind: bridge.Retry, Class: bridge.FailureFunctionError}}
				})
				r := testRoute("r", "q")
				r.Retry.MaxAttempts = 1
				k.start(func(c *dispatch.Config) {
					on(c)
					c.Targets[0].HTTP, c.Targets[0].Lambda = nil, &bridge.LambdaTarget{Function: function, Region: "eu-central-1", Timeout: time.Minute}
				}, r)
				k.pushEvents(producer, nil, "x")
				k.wait(time.Minute)
				got := spans.GetSpans()
				if len(got) != 1 {
					t.Fatalf("%d spans, want 1", len(got))
				}
				a := attributes(got[0].Attributes)
				if have := [2]string{a["faas.invoked_name"], a["faas.invoked_region"]}; have != want || a["faas.invoked_provider"] != "aws" ||
					got[0].Status.Code != codes.Error {
					t.Errorf("attributes = %v, status %v; want %v", a, got[0].Status, want)
				}
			})
		})
	}
}

func TestATestFireIsASpan(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		spans, on := withSpans()
		k.fn.statuses(503)
		p := k.start(on, testRoute("r", "q"))
		k.wait(time.Second)
		if _, err := p.TestFire(k.Context(), "r", bridge.Event{ID: "x", Body: []byte("x"), Traceparent: producer}); err != nil {
			t.Fatal(err)
		}
		if got := spans.GetSpans(); len(got) != 1 || got[0].Status.Code != codes.Error || len(got[0].Links) != 1 {
			t.Errorf("spans = %+v, want one that failed", got)
		}
	})
}
