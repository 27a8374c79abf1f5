package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/ingress"
)

// pusher stands for Queen.
type pusher func(ctx context.Context, items []queen.Item) ([]queen.PushVerdict, error)

func (p pusher) Push(ctx context.Context, items []queen.Item) ([]queen.PushVerdict, error) {
	return p(ctx, items)
}

func stored(_ context.Context, items []queen.Item) ([]queen.PushVerdict, error) {
	return []queen.PushVerdict{{Status: queen.PushQueued}}, nil
}

// function over the sources github (scheme none) and their like.
func testFunction(t *testing.T, log *slog.Logger, to pusher) *function {
	t.Helper()
	c := ingress.Config{Queen: to, Logger: log}
	for _, name := range []string{"github", "stripe", "slack"} {
		c.Sources = append(c.Sources, bridge.Source{Name: name, Scheme: "none"})
	}
	// As a configuration may have them that is meant for a server.
	c.Settings.Batch.Linger = time.Hour
	c.Settings.TLS = bridge.IngressTLS{Cert: "/nowhere", Key: "/nowhere", ClientCA: "/nowhere"}
	f, err := newFunction(c)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func status(t *testing.T, doc []byte) int {
	t.Helper()
	var d struct{ StatusCode int }
	if err := json.Unmarshal(doc, &d); err != nil {
		t.Fatalf("answer %s: %v", doc, err)
	}
	return d.StatusCode
}

// TestAPushIsAnsweredBeforeTheFunctionEnds: 500 ms before, with the push cut
// off and gone.
func TestAPushIsAnsweredBeforeTheFunctionEnds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ left, after, want time.Duration }{
		"less than enqueue_timeout":    {2 * time.Second, 0, 1500 * time.Millisecond},
		"more than enqueue_timeout":    {time.Minute, 0, 5 * time.Second},
		"a push that takes its leave":  {2 * time.Second, 200 * time.Millisecond, 1700 * time.Millisecond},
		"a push that does not go":      {2 * time.Second, time.Hour, 1900 * time.Millisecond},
		"less than the margin is left": {300 * time.Millisecond, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var pushing atomic.Int32
				f := testFunction(t, nil, func(ctx context.Context, _ []queen.Item) ([]queen.PushVerdict, error) {
					pushing.Add(1)
					defer pushing.Add(-1)
					<-ctx.Done()
					time.Sleep(tc.after) // of the bubble's clock
					return nil, ctx.Err()
				})
				ctx, cancel := context.WithTimeout(t.Context(), tc.left)
				defer cancel()
				start := time.Now()
				doc, err := f.Invoke(ctx, readEvent(t, "http-api"))
				if err != nil || status(t, doc) != http.StatusServiceUnavailable {
					t.Errorf("Invoke = %s, %v; want 503", doc, err)
				}
				if took := time.Since(start); took != tc.want {
					t.Errorf("answered after %s, want %s", took, tc.want)
				}
				if tc.after < time.Second && pushing.Load() != 0 {
					t.Error("a push runs on after the answer")
				}
				time.Sleep(tc.after)
			})
		})
	}
}

// TestNothingLingers: a pushed event is answered at once, whatever the file
// says about batches, and TLS is not ours.
func TestNothingLingers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := testFunction(t, nil, stored)
		start := time.Now()
		for _, name := range []string{"http-api", "function-url", "rest-api-custom-domain", "load-balancer-multi"} {
			doc, err := f.Invoke(t.Context(), readEvent(t, name))
			if err != nil || status(t, doc) != http.StatusOK {
				t.Errorf("%s: Invoke = %s, %v; want 200", name, doc, err)
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %s, want no wait", took)
		}
	})
}

// TestWhatComesAfterTheAnswerEndsBeforeIt: a function is frozen once it has
// answered.
func TestWhatComesAfterTheAnswerEndsBeforeIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var logs bytes.Buffer
		f := testFunction(t, bridge.LogConfig{}.Logger(&logs, false), stored)
		f.settle = func(ctx context.Context) error {
			select {
			case <-time.After(1200 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		for _, tc := range []struct {
			left, want time.Duration
			warned     bool
		}{{3 * time.Second, 1200 * time.Millisecond, false}, {time.Second, 900 * time.Millisecond, true}} {
			ctx, cancel := context.WithTimeout(t.Context(), tc.left)
			start := time.Now()
			if doc, err := f.Invoke(ctx, readEvent(t, "http-api")); err != nil || status(t, doc) != http.StatusOK {
				t.Errorf("Invoke = %s, %v; want 200", doc, err)
			}
			cancel()
			if took := time.Since(start); took != tc.want {
				t.Errorf("with %s left it answered after %s, want %s", tc.left, took, tc.want)
			}
			if warned := strings.Contains(logs.String(), "confirmation"); warned != tc.warned {
				t.Errorf("with %s left warned = %v; log:\n%s", tc.left, warned, logs.String())
			}
		}
	})
}

func TestRefusalsOfTheFunctionItself(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	f := testFunction(t, bridge.LogConfig{}.Logger(&logs, false), func(context.Context, []queen.Item) ([]queen.PushVerdict, error) {
		t.Error("pushed")
		return nil, nil
	})
	if doc, err := f.Invoke(t.Context(), []byte(`{"Records":[{"body":"secret-value"}]}`)); err == nil {
		t.Errorf("Invoke of an SQS event = %s, want an error", doc)
	}
	doc, err := f.Invoke(t.Context(), bytes.Replace(readEvent(t, "function-url"), []byte("/in/stripe"), []byte("/in/%zz"), 1))
	const want = `{"statusCode":400,"headers":{"Content-Type":"text/plain; charset=utf-8","X-Content-Type-Options":"nosniff"},"body":"bad request\n","isBase64Encoded":false}`
	if err != nil || string(doc) != want {
		t.Errorf("Invoke of a malformed path = %s, %v\nwant %s", doc, err, want)
	}
	if doc, err := f.Invoke(t.Context(), readEvent(t, "http-api-get")); err != nil || status(t, doc) != http.StatusNotFound {
		t.Errorf("Invoke for an unknown source = %s, %v; want 404", doc, err)
	}
	for line := range strings.Lines(logs.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("log line %q is no JSON", line)
		}
	}
	if text := logs.String(); !strings.Contains(text, "event refused") || !strings.Contains(text, "request refused") || strings.Contains(text, "secret-value") {
		t.Errorf("log:\n%s", text)
	}
}
