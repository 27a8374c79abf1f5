package queen_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func TestConfigureSendsTheFullSet(t *testing.T) {
	t.Parallel()
	c, b := answering(t, 200, `{"configured":true,"queue":"q.a"}`)
	err := c.Configure(t.Context(), queen.QueueOptions{Queue: "q.a", Namespace: "q", Task: "a", Lease: time.Minute, RetryLimit: 1000,
		DedupWindow: 6 * time.Hour, CompletedRetention: 6*time.Hour + 1})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"queue":"q.a","namespace":"q","task":"a","mode":"replace","options":{"leaseTime":60,"retryLimit":1000,` +
		`"deadLetterQueue":true,"dlqAfterMaxRetries":true,"dedupWindowSeconds":21600,` +
		`"retentionEnabled":true,"retentionSeconds":0,"completedRetentionSeconds":21601}}`
	if got := b.last(t); got.body != want || got.uri != "/api/v1/configure" {
		t.Errorf("sent %s\n%s\nwant\n%s", got.uri, got.body, want)
	}
	_ = c.Configure(t.Context(), queen.QueueOptions{Queue: "q.a", Lease: time.Second})
	if got := b.last(t).body; !strings.Contains(got, `"retentionEnabled":false,"retentionSeconds":0,"completedRetentionSeconds":0`) || !strings.Contains(got, `"namespace":"","task":""`) {
		t.Errorf("sent %s", got)
	}
}

func TestConfigureRefuses(t *testing.T) {
	t.Parallel()
	c, b := answering(t, 200, `{"configured":true,"queue":"other"}`)
	for _, o := range []queen.QueueOptions{
		{Lease: time.Second}, {Queue: strings.Repeat("x", 256), Lease: time.Second}, {Queue: "q"}, {Queue: "q", Lease: -time.Second},
		{Queue: "q", Lease: time.Second, RetryLimit: -1}, {Queue: "q", Lease: time.Second, Retention: -1},
		{Queue: "q", Lease: time.Second, DedupWindow: -1}, {Queue: "q", Lease: time.Second, CompletedRetention: -1},
	} {
		if err := c.Configure(t.Context(), o); err == nil || queen.Uncertain(err) {
			t.Errorf("Configure(%+v) error = %v", o, err)
		}
	}
	if n := len(b.requests()); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
	if err := c.Configure(t.Context(), queen.QueueOptions{Queue: "q", Lease: time.Second}); !queen.Uncertain(err) {
		t.Errorf("Configure() answered for another queue: %v", err)
	}
	c, _ = replaying(t, "queues", "configure all options")
	if err := c.Configure(t.Context(), queen.QueueOptions{Queue: "conf-b315e7", Lease: time.Second}); err != nil {
		t.Errorf("Configure() = %v", err)
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	c, b := replaying(t, "queues", "queue depth")
	if got, err := c.Depth(t.Context(), "maxs-b315e7", "g 1"); err != nil || got != 5 {
		t.Errorf("Depth() = %d, %v; want 5", got, err)
	}
	if got := b.last(t).uri; got != "/api/v1/resources/queues/maxs-b315e7/depth?group=g+1" {
		t.Errorf("asked %s", got)
	}
	c, _ = replaying(t, "errors", "queue detail of unknown queue")
	if _, err := c.Depth(t.Context(), "nope", "g"); !errors.Is(err, queen.ErrNotFound) {
		t.Errorf("Depth() of an unknown queue: %v; want ErrNotFound", err)
	}
	c, _ = replaying(t, "errors", "unknown api route")
	if _, err := c.Depth(t.Context(), "nope", "g"); err == nil || errors.Is(err, queen.ErrNotFound) {
		t.Errorf("Depth() of a broker without the route: %v; want another error than ErrNotFound", err)
	}
	c, _ = answering(t, 200, `{}`)
	if _, err := c.Depth(t.Context(), "q", "g"); !queen.Uncertain(err) {
		t.Errorf("Depth() without pending: %v", err)
	}
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	c, b := replaying(t, "dlq", "list by queue")
	got, err := c.DeadLetters(t.Context(), queen.DeadLetterQuery{Queue: "t74daf-eea2a0", Group: "g"})
	if err != nil || len(got) != 3 {
		t.Fatalf("DeadLetters() = %v, %v", got, err)
	}
	if s := b.last(t).uri; s != "/api/v1/dlq?queue=t74daf-eea2a0&consumerGroup=g&limit=100&offset=0" {
		t.Errorf("asked %s", s)
	}
	sameJSON(t, "data", string(got[1].Data), `{"id":"m2"}`)
	got[1].Data = nil
	want := queen.DeadLetter{ID: "3a119893-100b-4d1a-800d-92bd6df42257", TransactionID: "m2", PartitionID: "ae497e84-fccf-4c0f-822a-2c3153d41dfa",
		Queue: "t74daf-eea2a0", Partition: "p", Group: "g", Error: "boom m2", FailedAt: time.Date(2026, 11, 30, 8, 11, 53, 682000000, time.UTC)}
	if d := cmp.Diff(want, got[1]); d != "" {
		t.Error(d)
	}
	c, _ = answering(t, 200, `{"total":0}`)
	if _, err := c.DeadLetters(t.Context(), queen.DeadLetterQuery{Limit: 5, Offset: 10}); !queen.Uncertain(err) {
		t.Errorf("DeadLetters() without messages: %v", err)
	}
}

func TestDeleteDeadLetter(t *testing.T) {
	t.Parallel()
	c, b := replaying(t, "dlq", "delete a dead letter by address")
	if err := c.DeleteDeadLetter(t.Context(), "pid", "l/1/n"); err != nil {
		t.Error(err)
	}
	if s := b.last(t); s.method != "DELETE" || s.uri != "/api/v1/messages/pid/l%2F1%2Fn" {
		t.Errorf("sent %s %s", s.method, s.uri)
	}
	c, _ = replaying(t, "errors", "message by id unknown")
	if err := c.DeleteDeadLetter(t.Context(), "pid", "x"); !errors.Is(err, queen.ErrNotFound) {
		t.Errorf("error = %v; want ErrNotFound", err)
	}
	c, b = answering(t, 200, `{}`)
	if err := c.DeleteDeadLetter(t.Context(), "pid", ""); err == nil || len(b.requests()) > 0 {
		t.Error("an incomplete address was sent")
	}
	if err := c.DeleteDeadLetter(t.Context(), "pid", "x"); !queen.Uncertain(err) {
		t.Errorf("error = %v; want an uncertain one", err)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	c, _ := replaying(t, "health", "health ok")
	want := queen.Health{Healthy: true, Engine: "segments-rust", Version: "1.3.0"}
	if got, err := c.Health(t.Context()); err != nil || got != want {
		t.Errorf("Health() = %+v, %v", got, err)
	}
	c, _ = replaying(t, "outage", "health while PostgreSQL is away")
	want.Healthy, want.Detail = false, "unhealthy, database disconnected"
	if got, err := c.Health(t.Context()); err != nil || got != want {
		t.Errorf("Health() = %+v, %v", got, err)
	}
	for status, body := range map[int]string{502: `<html>`, 503: `upstream away`, 404: `{}`, 200: `<html>`, 201: `{}`} {
		c, _ = answering(t, status, body)
		if got, err := c.Health(t.Context()); err == nil {
			t.Errorf("Health() answered %d %s = %+v", status, body, got)
		}
	}
}

// probed answers like a broker that has the named routes.
func probed(health string, routes ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/health":
			_, _ = io.WriteString(w, health)
			return
		case strings.HasPrefix(r.URL.Path, "/api/v1/timers/") && strings.Contains(strings.Join(routes, ","), "timers"):
			_, _ = io.WriteString(w, `{"rows":[],"nextAfter":null,"truncated":false}`)
			return
		case r.URL.Path == "/api/v1/kv" && strings.Contains(strings.Join(routes, ","), "kv"):
			_, _ = io.WriteString(w, `{"results":[{"index":0,"op":"get","found":false,"key":"queenbridge-probe"}]}`)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":"Not Found","code":"no_such_route"}`)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	const queen13 = `{"status":"healthy","database":"connected","engine":"segments-rust","version":"1.3.0"}`
	for _, tt := range []struct {
		name, health string
		routes       []string
		want         string
	}{
		{"1.3.0", queen13, []string{"timers", "kv"}, ""},
		{"2.x", `{"status":"healthy","engine":"raft","version":"2.1.0"}`, []string{"timers", "kv"}, ""},
		{"1.0.2", strings.Replace(queen13, "1.3.0", "1.0.2", 1), nil, "unsupported broker: engine segments-rust version 1.0.2 has no timers; Queen 1.3.0 or newer is needed"},
		{"without kv", queen13, []string{"timers"}, "unsupported broker: engine segments-rust version 1.3.0 has no KV; Queen 1.3.0 or newer is needed"},
		{"0.15", `{"status":"healthy","server":"C++ Queen Server (libqueen)","version":"1.0.0"}`, []string{"timers", "kv"},
			"unsupported broker: a broker that names no engine (Queen 0.15 or something else) has no timers; Queen 1.3.0 or newer is needed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t, probed(tt.health, tt.routes...))
			c := client(t, queen.Config{URLs: []string{b.URL}})
			_, err := c.Probe(t.Context())
			var unsupported *queen.UnsupportedError
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("Probe() = %v", err)
			case tt.want != "" && (!errors.As(err, &unsupported) || err.Error() != tt.want):
				t.Errorf("Probe() = %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestProbeTellsCredentialsFromCapabilities(t *testing.T) {
	t.Parallel()
	b := newBroker(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" {
			_, _ = io.WriteString(w, `{"status":"healthy","engine":"segments-rust","version":"1.3.0"}`)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":"Authentication required"}`)
	})
	c := client(t, queen.Config{URLs: []string{b.URL}})
	_, err := c.Probe(t.Context())
	var unsupported *queen.UnsupportedError
	if !queen.Denied(err) || errors.As(err, &unsupported) {
		t.Errorf("Probe() = %v; want a refusal of the credentials", err)
	}
}

func TestOlder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		engine, version, than string
		want                  bool
	}{
		{"segments-rust", "1.3.0", "1.5.2", true}, {"segments-rust", "1.5.2", "1.5.2", false}, {"segments-rust", "1.10.0", "1.5.2", false},
		{"segments-rust", "1.3.0-beta.1", "1.3.1", true}, {"raft", "1.0.0", "1.5.2", false}, {"segments-rust", "", "1.5.2", false},
		{"segments-rust", "1.3", "1.5.2", false}, {"segments-rust", "1.x.0", "1.5.2", false},
	} {
		h := queen.Health{Engine: tt.engine, Version: tt.version}
		if got := h.Older(tt.than); got != tt.want {
			t.Errorf("%+v.Older(%s) = %t", h, tt.than, got)
		}
	}
}

func TestQueues(t *testing.T) {
	t.Parallel()
	c, b := answering(t, 200, `{"queues":[{"id":"1","name":"queenbridge-retry.a","namespace":"queenbridge-retry","task":"a","messages":{"total":1}},{"name":"q","namespace":"","task":null}]}`)
	got, err := c.Queues(t.Context())
	want := []queen.QueueInfo{{Name: "queenbridge-retry.a", Namespace: "queenbridge-retry", Task: "a"}, {Name: "q"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Queues() (-want +got):\n%s%v", diff, err)
	}
	if got := b.last(t).uri; got != "/api/v1/resources/queues" {
		t.Errorf("asked %s", got)
	}
	c, _ = answering(t, 200, `{}`)
	if _, err := c.Queues(t.Context()); !queen.Uncertain(err) {
		t.Errorf("Queues() without queues: %v", err)
	}
}
