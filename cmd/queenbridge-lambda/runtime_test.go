package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch/lambdatarget/lambdatest"
)

const (
	githubSecret = "It's a Secret to Everybody"
	stripeSecret = "whsec_test_secret"
	slackSecret  = "8f742231b10e8888abcd99yyyzzz85a5"
)

var threeSources = fmt.Sprintf(`
sources:
  - {name: github, scheme: github, secrets: [%q]}
  - {name: stripe, scheme: stripe, secrets: [%q]}
  - {name: slack, scheme: slack, secrets: [%q]}
`, githubSecret, stripeSecret, slackSecret)

// webhook is one signed request.
type webhook struct {
	source string
	header [][2]string
	body   []byte
}

func mac(secret string, parts ...string) string {
	m := hmac.New(sha256.New, []byte(secret))
	for _, p := range parts {
		m.Write([]byte(p))
	}
	return hex.EncodeToString(m.Sum(nil))
}

// webhooks are signed by hand, after the providers' documents. n makes their
// ids differ.
func webhooks(n string) []webhook {
	now := fmt.Sprint(time.Now().Unix())
	github := "{\"zen\":\"café 🎉 <a\\/b> \\u00e9\",\"raw\":\"\xff\x00\"}\r\n"
	stripe := fmt.Sprintf("{\n  \"id\": \"evt_%s\",\n  \"object\": \"event\", \"type\": \"charge.succeeded\", \"name\": \"Zoë + %%2F\"\n}", n)
	slack := "token=x&team_id=T1&command=%2Fgr%C3%BC%C3%9Fe&text=a+b+%2B+%25&trigger_id=" + n + ".1"
	return []webhook{
		{"github", [][2]string{{"Content-Type", "application/json"}, {"X-GitHub-Event", "push"}, {"X-GitHub-Delivery", "d-" + n},
			{"X-Hub-Signature-256", "sha256=" + mac(githubSecret, github)}}, []byte(github)},
		{"stripe", [][2]string{{"Content-Type", "application/json; charset=utf-8"},
			{"Stripe-Signature", "t=" + now + ",v1=" + mac(stripeSecret, now, ".", stripe) + ",v0=00"}}, []byte(stripe)},
		{"slack", [][2]string{{"Content-Type", "application/x-www-form-urlencoded"}, {"X-Slack-Request-Timestamp", now},
			{"X-Slack-Signature", "v0=" + mac(slackSecret, "v0:", now, ":", slack)}}, []byte(slack)},
	}
}

// sentAs puts a request into a recorded document of one kind. What is no text
// travels as base64, as every gateway does it.
func (h webhook) sentAs(t *testing.T, name string) []byte {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(readEvent(t, name), &doc); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"path", "rawPath"} {
		if path, ok := doc[field].(string); ok {
			prefix, _, _ := strings.Cut(path, "/in/")
			doc[field] = prefix + "/in/" + h.source
		}
	}
	for _, field := range []string{"headers", "multiValueHeaders"} {
		if headers, ok := doc[field].(map[string]any); ok {
			h.put(headers, field == "multiValueHeaders", !strings.HasPrefix(name, "rest"))
		}
	}
	text := bytes.ToValidUTF8(h.body, nil)
	doc["body"], doc["isBase64Encoded"] = string(h.body), false
	if len(text) != len(h.body) {
		doc["body"], doc["isBase64Encoded"] = base64.StdEncoding.EncodeToString(h.body), true
	}
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (h webhook) put(headers map[string]any, lists, lower bool) {
	for name := range headers {
		if !strings.EqualFold(name, "host") && !strings.EqualFold(name, "x-forwarded-for") {
			delete(headers, name)
		}
	}
	for _, field := range h.header {
		name, value := field[0], any(field[1])
		if lower {
			name = strings.ToLower(name)
		}
		if lists {
			value = []any{value}
		}
		headers[name] = value
	}
}

// serveBroker serves an embedded broker over TCP.
func serveBroker(t *testing.T) (url string, client *queen.Client) {
	t.Helper()
	broker, err := devbroker.Open(devbroker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(broker)
	client, err = queen.New(queen.Config{URLs: []string{server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close(); _ = broker.Close() })
	return server.URL, client
}

// events takes everything out of a queue.
func events(t *testing.T, c *queen.Client, name string) (out []bridge.Event) {
	t.Helper()
	for {
		got, err := c.Pop(t.Context(), queen.PopRequest{Queue: name, Group: "test", Batch: 100, Partitions: 16, Lease: time.Minute, SubscriptionMode: "all"})
		if err != nil {
			t.Fatalf("pop: %v", err)
		}
		if len(got.Messages) == 0 {
			return out
		}
		for _, m := range got.Messages {
			e, ours, err := bridge.DecodeEvent(m.Data)
			if err != nil || !ours {
				t.Fatalf("DecodeEvent(%s) = %v, %v", m.Data, ours, err)
			}
			out = append(out, e)
		}
	}
}

// kinds are one recorded document of each kind.
func kinds() []string {
	return []string{"rest-api", "rest-api-custom-domain", "http-api-format-1", "http-api", "function-url", "load-balancer", "load-balancer-multi"}
}

// TestSignedWebhooksAreStoredByteForByte: through a real runtime and every kind
// of gateway.
func TestSignedWebhooksAreStoredByteForByte(t *testing.T) {
	t.Parallel()
	url, client := serveBroker(t)
	e := startEmulator(t, buildFunction(t, threeSources), 10, "QUEENBRIDGE_QUEEN_URLS="+url)
	want := map[string]map[string]int{}
	for _, kind := range kinds() {
		for _, h := range webhooks(kind) {
			for _, time := range []string{"first", "second"} { // the sender comes again
				if doc := e.invoke(h.sentAs(t, kind)); status(t, doc) != http.StatusOK {
					t.Errorf("%s, %s, %s time: %s, want 200", kind, h.source, time, doc)
				}
			}
			if want[h.source] == nil {
				want[h.source] = map[string]int{}
			}
			want[h.source][string(h.body)]++
			h.header[len(h.header)-1][1] = strings.Replace(h.header[len(h.header)-1][1], "=", "=0", 1)
			if doc := e.invoke(h.sentAs(t, kind)); status(t, doc) != http.StatusUnauthorized {
				t.Errorf("%s, %s with another signature: %s, want 401", kind, h.source, doc)
			}
		}
	}
	for source, bodies := range want {
		for _, got := range events(t, client, source) {
			if bodies[string(got.Body)]--; bodies[string(got.Body)] < 0 {
				t.Errorf("%s: stored %q (%s), which was not sent, or stored twice", source, got.Body, got.ID)
			}
			if got.Path != "/in/"+source || got.Class != bridge.ClassVerified {
				t.Errorf("%s: stored with path %q and class %q", source, got.Path, got.Class)
			}
		}
		for body, n := range bodies {
			if n > 0 {
				t.Errorf("%s: %q is missing %d times", source, body, n)
			}
		}
	}
	if out := e.Log(); !strings.Contains(out, `"msg":"ready"`) || strings.Contains(out, githubSecret) {
		t.Errorf("the log is not the function's, or shows a secret:\n%s", out)
	}
}

// TestABrokerThatIsAwayIs503InTime: the function must answer before it is
// ended, or its gateway makes 502 or 504 of it.
func TestABrokerThatIsAwayIs503InTime(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer silent.Close()
	defer close(release)
	bootstrap := buildFunction(t, threeSources)
	for name, url := range map[string]string{"refuses": "http://" + lambdatest.FreeAddr(t), "is silent": silent.URL} {
		t.Run(name, func(t *testing.T) {
			e := startEmulator(t, bootstrap, 3, "QUEENBRIDGE_QUEEN_URLS="+url)
			for _, kind := range []string{"function-url", "load-balancer-multi"} {
				e.answersInTime(t, webhooks(kind)[0].sentAs(t, kind), kind)
			}
		})
	}
}

// answersInTime checks that an event is answered 503 by the function, and not
// by its end. The half second that the function keeps for that a busy machine
// may take away now and then, not three times in a row.
func (e *emulator) answersInTime(t *testing.T, event []byte, kind string) {
	t.Helper()
	for try := 1; ; try++ {
		doc := e.invoke(event)
		switch ended := bytes.Contains(doc, []byte("Task timed out")); {
		case ended && try < 3:
			t.Logf("%s: ended, tried again: %s", kind, doc)
		case ended, status(t, doc) != http.StatusServiceUnavailable:
			t.Fatalf("%s: %s, want 503", kind, doc)
		default:
			return
		}
	}
}

// TestAnEventThatIsNoRequestIsAnErrorOfTheFunction and the next one is handled.
func TestAnEventThatIsNoRequestIsAnErrorOfTheFunction(t *testing.T) {
	t.Parallel()
	url, _ := serveBroker(t)
	e := startEmulator(t, buildFunction(t, threeSources), 10, "QUEENBRIDGE_QUEEN_URLS="+url)
	if doc := e.invoke([]byte(`{"Records":[]}`)); !bytes.Contains(doc, []byte(`"errorMessage":"read event: this is no request`)) {
		t.Errorf("answer %s, want an error", doc)
	}
	if doc := e.invoke(webhooks("after")[1].sentAs(t, "http-api")); status(t, doc) != http.StatusOK {
		t.Errorf("answer %s, want 200", doc)
	}
}

// TestSecretsOfAWSAreReadAtTheStart: with the credentials the runtime hands to
// the function.
func TestSecretsOfAWSAreReadAtTheStart(t *testing.T) {
	t.Parallel()
	secrets := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		_ = json.NewEncoder(w).Encode(map[string]any{"Parameter": map[string]any{"Value": githubSecret}})
	}))
	t.Cleanup(secrets.Close)
	url, client := serveBroker(t)
	e := startEmulator(t, buildFunction(t, "sources: [{name: github, scheme: github, secrets: [\"${aws-ssm:/hooks/github}\"]}]\n"), 10,
		"QUEENBRIDGE_QUEEN_URLS="+url, "AWS_ENDPOINT_URL="+secrets.URL, "AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=key-of-nobody")
	if doc := e.invoke(webhooks("aws")[0].sentAs(t, "function-url")); status(t, doc) != http.StatusOK {
		t.Errorf("answer %s, want 200", doc)
	}
	if got := events(t, client, "github"); len(got) != 1 || strings.Contains(e.Log(), githubSecret) {
		t.Errorf("%d events stored; log:\n%s", len(got), e.Log())
	}
}
