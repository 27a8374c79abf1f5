package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/time/rate"
)

// The variables of OpenTelemetry that say whether to trace; its libraries read
// the others (sampler, headers, queue, limits, resource) themselves.
const (
	otelDisabled       = "OTEL_SDK_DISABLED"
	otelExporter       = "OTEL_TRACES_EXPORTER"
	otelEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	otelTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	otelProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	otelTracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
)

// maxExportError bounds what is logged of a failed export, in bytes: a
// collector may answer with a page.
const maxExportError = 512

// tracesAsked says that the environment asks for an export of traces over
// OTLP/HTTP; refused is why what it asks for cannot be had. No value is in it:
// an endpoint may hold a credential.
func tracesAsked(env lookup) (asked bool, refused string) {
	value := func(names ...string) (v, name string) {
		for _, name := range names {
			if v, _ := env(name); strings.TrimSpace(v) != "" {
				return strings.TrimSpace(v), name
			}
		}
		return "", ""
	}
	endpoint, endpointName := value(otelTracesEndpoint, otelEndpoint)
	disabled, _ := value(otelDisabled)
	exporter, _ := value(otelExporter)
	protocol, protocolName := value(otelTracesProtocol, otelProtocol)
	switch u, err := url.Parse(endpoint); {
	case endpoint == "", strings.EqualFold(disabled, "true"), exporter == "none":
		return false, ""
	case exporter != "" && !slices.Contains(strings.Split(exporter, ","), "otlp"):
		return false, otelExporter + " must be otlp or none"
	case protocol != "" && protocol != "http/protobuf" && protocol != "http/json":
		return false, protocolName + " must be http/protobuf or http/json"
	case err != nil, u.Host == "", u.Scheme != "http" && u.Scheme != "https":
		return false, endpointName + " must be an http or https URL"
	}
	return true, ""
}

// startTracing exports the spans of attempts where the environment asks for it,
// in the background, from a queue that drops what is too much: no delivery waits
// for a collector. flush, to be called once, exports what is left, for at most
// within after ctx ended. A nil provider: nothing is traced.
func startTracing(ctx context.Context, env lookup, log *slog.Logger, within time.Duration) (provider *sdktrace.TracerProvider, flush func(), err error) {
	asked, refused := tracesAsked(env)
	if !asked {
		if refused != "" {
			log.Warn("attempts are not traced", "reason", refused)
		}
		return nil, func() {}, nil
	}
	otel.SetErrorHandler(&exportErrors{log: log, sometimes: rate.Sometimes{Interval: time.Minute}})
	otel.SetLogger(logr.FromSlogHandler(unusedSettings{log}))
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("export traces: %w", err)
	}
	provider = sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(tracedAs(ctx, log)))
	log.Info("attempts are traced")
	left, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(within, cancel) })
	return provider, func() {
		defer cancel()
		left, done := context.WithTimeout(left, within)
		defer done()
		if err := provider.Shutdown(left); err != nil {
			log.Warn("last traces not exported", "error", boundedError(err))
		}
	}, nil
}

// tracedAs is what the traces say of this process: OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES beat what is said here.
func tracedAs(ctx context.Context, log *slog.Logger) *resource.Resource {
	r, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "queenbridge"), attribute.String("service.version", versionText())),
		resource.WithFromEnv())
	if err != nil { // what could be read is used
		log.Warn("OTEL_RESOURCE_ATTRIBUTES must be name=value pairs with commas between them")
	}
	return cmp.Or(r, resource.Empty())
}

// exportErrors logs what goes wrong with exports, once a minute.
type exportErrors struct {
	log       *slog.Logger
	sometimes rate.Sometimes
	failures  atomic.Int64
}

// Handle is called for each failed export.
func (e *exportErrors) Handle(err error) {
	e.failures.Add(1)
	e.sometimes.Do(func() {
		e.log.Warn("traces not exported", "failures", e.failures.Swap(0), "error", boundedError(err))
	})
}

func boundedError(err error) string {
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), maxExportError)], "")
}

// unusedSettings logs which of OpenTelemetry's variables its libraries could not
// use, without the attributes of their records: those of a header that is
// malformed hold the credential.
type unusedSettings struct{ log *slog.Logger }

// Enabled is for errors alone.
func (unusedSettings) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelError
}

// Handle keeps the message.
func (h unusedSettings) Handle(ctx context.Context, r slog.Record) error {
	h.log.WarnContext(ctx, "a setting of the trace export is not used", "setting", r.Message)
	return nil
}

// WithAttrs drops them.
func (h unusedSettings) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup needs none.
func (h unusedSettings) WithGroup(string) slog.Handler { return h }
