package bridge_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/queenbridge/queenbridge/bridge"
)

const richDocument = `{
	"queen": {"embedded": "memory"},
	"ingress": {"batch": {"linger": "1500ms", "max_bytes": 1000}},
	"sources": [{"name": "a", "scheme": "hmac", "scheme_options": {"header": "x-sig", "timestamp": {"header": "x-time", "tolerance": "90s"}, "n": 1, "f": 1.5, "b": true, "l": ["x", 2]},
		"methods": ["POST", "PUT"], "max_body": "1KiB", "rate": {"per_second": 0.25, "burst": 3}}],
	"targets": [{"name": "t", "http": {"url": "http://x/", "timeout": "1h30m", "headers": {"X-B": "b", "X-A": "${a}"}}},
		{"name": "f", "lambda": {"function": "f"}}],
	"routes": [{"name": "r", "queue": "a", "target": "t", "ordering": "partition", "pattern": {"type": ["x", {"prefix": "y"}]}, "retry": {"backoff": ["1ms", "1h"]}}],
	"queues": [{"name": "a", "retention": "10h"}]
}`

func TestEffectiveRoundTrip(t *testing.T) {
	t.Parallel()
	for name, doc := range map[string]string{"empty": `{}`, "whole": strings.ReplaceAll(wholeDocument, `["s"]`, `[]`), "rich": richDocument} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, problems := bridge.Decode(document(t, doc))
			if len(problems) > 0 {
				t.Fatal(texts(problems))
			}
			want := c.Effective()
			again, problems := bridge.Decode(want)
			if len(problems) > 0 {
				t.Fatal(texts(problems))
			}
			if diff := cmp.Diff(want, again.Effective()); diff != "" {
				t.Errorf("second Effective (-want +got):\n%s", diff)
			}
			// What stands for another value is written out; the rest is the same.
			for i := range c.Sources {
				c.Sources[i].MaxBody = again.Sources[i].MaxBody
			}
			for i := range c.Queues {
				c.Queues[i].CompletedRetention, c.Queues[i].DedupWindow = again.Queues[i].CompletedRetention, again.Queues[i].DedupWindow
			}
			if diff := cmp.Diff(c, again, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Decode(Effective) (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEffectiveShowsValuesInEffect(t *testing.T) {
	t.Parallel()
	c, _ := bridge.Decode(document(t, strings.ReplaceAll(wholeDocument, `"queues": [{"name": "github"}]`, `"queues": [{"name": "github", "retention": "100h"}]`)))
	doc := c.Effective()
	for path, want := range map[string]string{
		"stop_timeout": "30s", "ingress.batch.max_bytes": "4MiB", "ingress.spool.max_bytes": "1GiB", "routes[0].retry.max_age": "24h",
		"sources[0].queue": "github", "sources[0].max_body": "25MiB", "sources[0].secrets[0]": "***", "routes[0].group": "r",
		"queues[0].completed_retention": "100h", "queues[0].dedup_window": "72h",
	} {
		if got, found := doc.At(path); !found || got.Text != want {
			t.Errorf("%s = %q, want %q", path, got.Text, want)
		}
	}
}

// No credential of any kind is shown, wherever it stands.
func TestEffectiveHidesCredentials(t *testing.T) {
	t.Parallel()
	const secret = "tops3cret"
	c, _ := bridge.Decode(document(t, strings.ReplaceAll(`{
		"queen": {"token": "S"}, "admin": {"tokens": [{"name": "a", "token": "S"}]},
		"sources": [{"secrets": ["S", "S"], "scheme_options": {"verify_token": "S", "auth": {"password": "S"}, "api_key": ["S"]}}],
		"targets": [{"http": {"headers": {"Authorization": "S", "X-Api-Key": "S", "Cookie": "S"}}, "signing": {"secrets": ["S"]},
			"auth": {"password": "S", "token": "S", "value": "S", "client_secret": "S"}}]}`, `"S"`, `"`+secret+`"`)))
	doc, count := c.Effective(), 0
	doc.Walk("", func(path string, n *bridge.Node) {
		if strings.Contains(n.Text, secret) {
			t.Errorf("%s shows a credential", path)
		}
		if n.Text == "***" {
			count++
		}
	})
	if count != 15 {
		t.Errorf("%d values are hidden, want 15", count)
	}
}

// The order of fields is that of the reference.
func TestEffectiveOrder(t *testing.T) {
	t.Parallel()
	var keys []string
	for _, m := range bridge.Defaults().Effective().Members {
		keys = append(keys, m.Key)
	}
	want := []string{"log", "stop_timeout", "queen", "ingress", "dispatch", "admin", "sources", "targets", "routes", "queues"}
	if !reflect.DeepEqual(keys, want) {
		t.Errorf("order = %v, want %v", keys, want)
	}
}

func TestManagedQueues(t *testing.T) {
	t.Parallel()
	c, problems := bridge.Decode(document(t, `{
		"sources": [{"name": "github", "scheme": "github"}, {"name": "b", "scheme": "none", "queue": "shop.orders.eu"},
			{"name": "s", "scheme": "stripe", "queue": "shop.orders.eu"}, {"name": "c", "scheme": "none", "queue": "c"}],
		"routes": [{"name": "ci", "queue": "foreign"}],
		"queues": [{"name": "c", "lease": "10s", "retention": "2h", "dedup_window": "90s", "completed_retention": "1h"}, {"name": "extra.x"}]}`))
	if len(problems) > 0 {
		t.Fatal(texts(problems))
	}
	const week, limit = 168 * time.Hour, 1_000_000
	want := []bridge.ManagedQueue{
		{Name: "github", Namespace: "github", Lease: time.Minute, RetryLimit: limit, DedupWindow: 72 * time.Hour, Retention: week, CompletedRetention: week},
		{Name: "shop.orders.eu", Namespace: "shop", Task: "orders", Lease: time.Minute, RetryLimit: limit, DedupWindow: 72 * time.Hour, Retention: week, CompletedRetention: week},
		{Name: "c", Namespace: "c", Lease: 10 * time.Second, RetryLimit: limit, DedupWindow: 90 * time.Second, Retention: 2 * time.Hour, CompletedRetention: time.Hour},
		{Name: "extra.x", Namespace: "extra", Task: "x", Lease: time.Minute, RetryLimit: limit, DedupWindow: time.Hour, Retention: week, CompletedRetention: week},
		{Name: "queenbridge-retry.ci", Namespace: "queenbridge-retry", Task: "ci", Lease: time.Minute, RetryLimit: limit, DedupWindow: 6 * time.Hour, CompletedRetention: 6 * time.Hour},
		{Name: "queenbridge-dead.ci", Namespace: "queenbridge-dead", Task: "ci", Lease: time.Minute, RetryLimit: limit, DedupWindow: 720 * time.Hour, CompletedRetention: 720 * time.Hour},
		{Name: "queenbridge-large.ci", Namespace: "queenbridge-large", Task: "ci", Lease: time.Minute, RetryLimit: limit, DedupWindow: 6 * time.Hour, Retention: 744 * time.Hour},
	}
	if diff := cmp.Diff(want, c.ManagedQueues()); diff != "" {
		t.Errorf("ManagedQueues (-want +got):\n%s", diff)
	}
}

func TestSigningOptions(t *testing.T) {
	t.Parallel()
	s := bridge.Source{Scheme: "github", Secrets: []bridge.Secret{"a", "b"}, PublicURL: "https://x/", SchemeOptions: map[string]any{"k": "v"}}
	o := s.SigningOptions()
	if o.Scheme != "github" || strings.Join(o.Secrets, ",") != "a,b" || o.PublicURL != "https://x/" || o.SchemeOptions["k"] != "v" {
		t.Errorf("SigningOptions = %+v", o)
	}
}
