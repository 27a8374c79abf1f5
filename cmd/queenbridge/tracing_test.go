package main

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const producerSpan = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// traceExport is one export that a collector got.
type traceExport struct {
	path   string
	header http.Header
	spans  []*traces.ResourceSpans
}

// newCollector receives traces over OTLP/HTTP in protobuf, and answers with
// status.
func newCollector(t *testing.T, status int) (url string, exports <-chan traceExport) {
	t.Helper()
	got := make(chan traceExport, 1000)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var request collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &request); err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("export %s %s %v: %v", r.Method, r.URL, r.Header, err)
		}
		got <- traceExport{r.URL.Path, r.Header, request.ResourceSpans}
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

// texts are attributes that are strings.
func texts(all []*common.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range all {
		m[a.Key] = a.Value.GetStringValue()
	}
	return m
}

// delivers sends a webhook with the producer's traceparent, and returns the
// traceparent that the function saw.
func (p *process) delivers(w *world, f *target, id string) string {
	p.t.Helper()
	h := fromGitHub(w.path(), id, `{"n":1}`)
	h.header.Set("Traceparent", producerSpan)
	p.stored(h)
	return f.next().header.Get("Traceparent")
}

// TestAttemptsAreExportedOverOTLP: what is left at the stop is exported, too.
func TestAttemptsAreExportedOverOTLP(t *testing.T) {
	t.Parallel()
	url, exports := newCollector(t, http.StatusOK)
	w, f := newWorld(t), newTarget(t, always(200))
	p := w.start(w.route("github", hexSecret, f.URL, ""),
		"OTEL_EXPORTER_OTLP_ENDPOINT="+url, "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20t0ken", "OTEL_BSP_SCHEDULE_DELAY=600000",
		"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test")
	saw := p.delivers(w, f, "1")
	if code := p.stop(); code != 0 {
		t.Fatalf("stopped with %d", code)
	}
	select {
	case e := <-exports:
		if e.path != "/v1/traces" || e.header.Get("Authorization") != "Bearer t0ken" || len(e.spans) != 1 || len(e.spans[0].ScopeSpans) != 1 {
			t.Fatalf("export = %+v", e)
		}
		about := texts(e.spans[0].Resource.Attributes)
		if about["service.name"] != "queenbridge" || about["service.version"] != versionText() || about["deployment.environment.name"] != "test" {
			t.Errorf("resource = %v", about)
		}
		checkSpan(t, e.spans[0].ScopeSpans[0].Spans, w.name("main"), saw)
	default:
		t.Fatal("nothing was exported at the stop")
	}
	if strings.Contains(p.log(), "t0ken") {
		t.Error("the log shows the collector's credential")
	}
}

func checkSpan(t *testing.T, spans []*traces.Span, name, saw string) {
	t.Helper()
	if len(spans) != 1 {
		t.Fatalf("%d spans, want 1: %v", len(spans), spans)
	}
	s := spans[0]
	a := texts(s.Attributes)
	if s.Name != "attempt "+name || s.Kind != traces.Span_SPAN_KIND_CLIENT || a["queenbridge.route"] != name || a["queenbridge.outcome"] != "delivered" {
		t.Errorf("span = %v", s)
	}
	if want := "00-" + hex.EncodeToString(s.TraceId) + "-" + hex.EncodeToString(s.SpanId) + "-01"; saw != want {
		t.Errorf("the function saw traceparent %q, want %q", saw, want)
	}
	if len(s.Links) != 1 || "00-"+hex.EncodeToString(s.Links[0].TraceId)+"-"+hex.EncodeToString(s.Links[0].SpanId)+"-01" != producerSpan {
		t.Errorf("links = %v, want one to %s", s.Links, producerSpan)
	}
}

// TestNothingIsTracedUnlessAsked: the event's own traceparent passes through.
func TestNothingIsTracedUnlessAsked(t *testing.T) {
	t.Parallel()
	url, exports := newCollector(t, http.StatusOK)
	w, f := newWorld(t), newTarget(t, always(200))
	p := w.start(w.route("github", hexSecret, f.URL, ""), "OTEL_EXPORTER_OTLP_ENDPOINT="+url, "OTEL_SDK_DISABLED=true")
	if saw := p.delivers(w, f, "1"); saw != producerSpan {
		t.Errorf("the function saw traceparent %q, want the event's own", saw)
	}
	p.stop()
	if len(exports) != 0 {
		t.Error("traces were exported")
	}
}

// TestACollectorThatHangsHoldsNothingUp: neither deliveries nor the stop.
func TestACollectorThatHangsHoldsNothingUp(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	asked := make(chan struct{}, 100)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{}; <-release }))
	t.Cleanup(func() { close(release); s.Close() })
	w, f := newWorld(t), newTarget(t, always(200))
	p := w.start("stop_timeout: 3s\n"+w.route("github", hexSecret, f.URL, ""),
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+s.URL+"/v1/traces", "OTEL_BSP_SCHEDULE_DELAY=10", "OTEL_BSP_MAX_QUEUE_SIZE=1", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=1")
	p.delivers(w, f, "0")
	<-asked
	for _, id := range []string{"1", "2", "3", "4"} { // more than the queue holds
		p.delivers(w, f, id)
	}
	begun := time.Now()
	if code := p.stop(); code != 0 {
		t.Errorf("stopped with %d", code)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("the stop took %s, with a stop timeout of 3s", took)
	}
	if !strings.Contains(p.log(), "last traces not exported") {
		t.Error("the log does not say what was lost")
	}
}

// TestFailedExportsAreLoggedOnce for a while, without what a setting holds.
func TestFailedExportsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	url, exports := newCollector(t, http.StatusUnauthorized)
	w, f := newWorld(t), newTarget(t, always(200))
	p := w.start(w.route("github", hexSecret, f.URL, ""), "OTEL_EXPORTER_OTLP_ENDPOINT="+url,
		"OTEL_EXPORTER_OTLP_HEADERS=authorization t0ken", "OTEL_BSP_SCHEDULE_DELAY=10")
	for _, id := range []string{"1", "2", "3"} {
		p.delivers(w, f, id)
		<-exports
	}
	p.stop()
	log := p.log()
	if n := strings.Count(log, `"msg":"traces not exported"`); n != 1 {
		t.Errorf("%d records of failed exports, want 1", n)
	}
	if !strings.Contains(log, "401") || !strings.Contains(log, `"setting":"parse headers"`) || strings.Contains(log, "t0ken") {
		t.Error("the log must name the answer and the setting, and no credential")
	}
}

func TestTracesAreAskedForByTheEnvironment(t *testing.T) {
	t.Parallel()
	const general, own = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	for _, tt := range []struct {
		name    string
		env     map[string]string
		asked   bool
		refused string
	}{
		{"nothing", nil, false, ""},
		{"empty", map[string]string{general: " "}, false, ""},
		{"endpoint", map[string]string{general: "http://collector:4318"}, true, ""},
		{"endpoint of traces", map[string]string{own: "https://collector/v1/traces", general: "ftp://x"}, true, ""},
		{"disabled", map[string]string{general: "http://collector:4318", "OTEL_SDK_DISABLED": "True"}, false, ""},
		{"no exporter", map[string]string{general: "http://collector:4318", "OTEL_TRACES_EXPORTER": "none"}, false, ""},
		{"exporters", map[string]string{general: "http://collector:4318", "OTEL_TRACES_EXPORTER": "console,otlp"}, true, ""},
		{"other exporter", map[string]string{general: "http://collector:4318", "OTEL_TRACES_EXPORTER": "zipkin"}, false, "OTEL_TRACES_EXPORTER must be otlp or none"},
		{"json", map[string]string{general: "http://collector:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, true, ""},
		{"grpc", map[string]string{general: "http://collector:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, false,
			"OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf or http/json"},
		{"grpc for traces", map[string]string{general: "http://collector:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, false,
			"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL must be http/protobuf or http/json"},
		{"no URL", map[string]string{own: "collector:4318"}, false, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must be an http or https URL"},
		{"no host", map[string]string{general: "http:///v1"}, false, "OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			asked, refused := tracesAsked(func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok })
			if asked != tt.asked || refused != tt.refused {
				t.Errorf("tracesAsked(%v) = %v, %q, want %v, %q", tt.env, asked, refused, tt.asked, tt.refused)
			}
		})
	}
}
