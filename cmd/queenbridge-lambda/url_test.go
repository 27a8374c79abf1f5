package main

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/ingress"
)

// twilioEvent is a call of Twilio's, with the published example's form, as one
// kind of gateway hands over a query.
func twilioEvent(t *testing.T, kind, query, signature string) []byte {
	t.Helper()
	var doc map[string]any
	h := webhook{"twilio", [][2]string{{"Content-Type", "application/x-www-form-urlencoded"}, {"X-Twilio-Signature", signature}},
		[]byte("CallSid=CA1234567890ABCDE&Digits=1234&From=%2B14158675309&To=%2B18005551212&Caller=%2B14158675309")}
	if err := json.Unmarshal(h.sentAs(t, kind), &doc); err != nil {
		t.Fatal(err)
	}
	single, multi := map[string]any{}, map[string][]string{}
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(kind, "load") { // which alone decodes nothing
			value, _ = url.QueryUnescape(value)
		}
		single[name], multi[name] = value, append(multi[name], value)
	}
	doc["queryStringParameters"] = single
	if _, has := doc["rawQueryString"]; has {
		doc["rawQueryString"] = query
	}
	if _, has := doc["multiValueHeaders"]; has {
		doc["multiValueQueryStringParameters"] = multi
	}
	out, err := json.Marshal(doc) // sorts the names: the queries here are sorted
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func twilioFunction(t *testing.T, publicURL string) *function {
	t.Helper()
	f, err := newFunction(ingress.Config{Queen: pusher(stored), Sources: []bridge.Source{
		{Name: "twilio", Scheme: "twilio", Secrets: []bridge.Secret{"12345"}, PublicURL: publicURL},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestURLSignedSchemesGetTheQueryAsItWasSent: Twilio signs its URL. A REST API
// decodes the query, so there one form of it verifies and another cannot.
func TestURLSignedSchemesGetTheQueryAsItWasSent(t *testing.T) {
	t.Parallel()
	const publicURL = "https://hooks.example.com/in/twilio"
	f := twilioFunction(t, publicURL)
	for query, rest := range map[string]int{
		"bar=2&foo=1": http.StatusOK,
		"city=K%C3%B6ln%2FS%C3%BCd&sum=1%2B1&text=a%20b": http.StatusOK,
		"city=K%c3%b6ln/S%c3%bcd&text=a+b":               http.StatusUnauthorized,
	} {
		mac := hmac.New(sha1.New, []byte("12345"))
		mac.Write([]byte(publicURL + "?" + query +
			"CallSidCA1234567890ABCDECaller+14158675309Digits1234From+14158675309To+18005551212"))
		signature := base64.StdEncoding.EncodeToString(mac.Sum(nil))
		for _, kind := range kinds() {
			want := http.StatusOK
			if strings.HasPrefix(kind, "rest") || kind == "http-api-format-1" {
				want = rest
			}
			doc, err := f.Invoke(t.Context(), twilioEvent(t, kind, query, signature))
			if err != nil || status(t, doc) != want {
				t.Errorf("%s, ?%s: %s, %v; want %d", kind, query, doc, err, want)
			}
			if doc, err := f.Invoke(t.Context(), twilioEvent(t, kind, query+"&z=1", signature)); err != nil || status(t, doc) != http.StatusUnauthorized {
				t.Errorf("%s, another query: %s, %v; want 401", kind, doc, err)
			}
		}
	}
}

// TestAHandshakeIsAnsweredInTheEvent: Meta's GET, whose token holds an escaped
// ampersand.
func TestAHandshakeIsAnsweredInTheEvent(t *testing.T) {
	t.Parallel()
	f, err := newFunction(ingress.Config{
		Queen:   pusher(stored),
		Sources: []bridge.Source{{Name: "meta", Scheme: "meta", Secrets: []bridge.Secret{"app-secret"}, SchemeOptions: map[string]any{"verify_token": "me&you"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := f.Invoke(t.Context(), readEvent(t, "http-api-get"))
	var answer struct {
		StatusCode int
		Body       string
	}
	if err != nil || json.Unmarshal(doc, &answer) != nil || answer.StatusCode != 200 || answer.Body != "1158201444" {
		t.Errorf("Invoke = %s, %v; want 200 and the challenge", doc, err)
	}
}
