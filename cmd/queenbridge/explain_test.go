package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/queenbridge/queenbridge/signing"
)

const (
	plainSecret = "a-secret-of-thirty-two-characters"
	jsonBody    = `{"id":"evt_1","type":"t","name":"José <&> a/b","n":9007199254740993}`
)

// signedAt is when the requests of the tables were signed.
var signedAt = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// signedBy is a request as a provider with these options sends it.
func signedBy(t *testing.T, o signing.Options, body string) *signing.Request {
	t.Helper()
	r := &signing.Request{Method: http.MethodPost, Path: "/in/x", Header: http.Header{}, Body: []byte(body), Now: signedAt}
	if err := signing.Forge(o, r); err != nil {
		t.Fatal(err)
	}
	return r
}

func of(scheme, secret string) signing.Options {
	return signing.Options{Scheme: scheme, Secrets: []string{secret}}
}

// TestExplainNamesWhatDiffers: one thing goes wrong, and that is what is said.
func TestExplainNamesWhatDiffers(t *testing.T) {
	t.Parallel()
	whsec := "whsec_" + base64.StdEncoding.EncodeToString([]byte(plainSecret))
	for _, tt := range []struct {
		name, scheme        string
		theirs, ours        string // secrets
		body, arrived       string
		change              func(*signing.Request)
		reason, part, words string
	}{
		{name: "newline behind our secret", scheme: "github", theirs: plainSecret, ours: plainSecret + "\n", reason: "bad_signature", part: "secret", words: "white space (a newline"},
		{name: "space in front of our secret", scheme: "slack", theirs: plainSecret, ours: " " + plainSecret, reason: "bad_signature", part: "secret", words: "white space (a newline"},
		{name: "newline behind their secret", scheme: "github", theirs: plainSecret + "\n", ours: plainSecret, reason: "bad_signature", part: "secret", words: "provider's secret ends with white space"},
		{name: "quotes", scheme: "stripe", theirs: whsec, ours: `"` + whsec + `"`, reason: "bad_signature", part: "secret", words: "quotes"},
		{name: "stripe without whsec_", scheme: "stripe", theirs: whsec, ours: whsec[6:], reason: "bad_signature", part: "secret", words: "prefix whsec_, which is missing"},
		{name: "stripe decoded", scheme: "stripe", theirs: plainSecret, ours: whsec, reason: "bad_signature", part: "secret", words: "the provider decodes it"},
		{name: "text where base64 is meant", scheme: "polar", theirs: plainSecret, ours: base64.StdEncoding.EncodeToString([]byte(plainSecret)), reason: "bad_signature", part: "secret", words: "the provider decodes it"},
		{name: "whsec_ used as text", scheme: "svix", theirs: whsecOf(whsec), ours: whsec, reason: "bad_signature", part: "secret", words: "as text, whsec_ included"},
		{name: "hex decoded", scheme: "github", theirs: "\x01\x02\x03\x04", ours: "01020304", reason: "bad_signature", part: "secret", words: "hex stands for"},
		{name: "token with quotes", scheme: "telegram", theirs: plainSecret, ours: `"` + plainSecret + `"`, reason: "bad_credential", part: "secret", words: "quotes"},
		{name: "another secret", scheme: "github", theirs: plainSecret, ours: "quite-another-secret", reason: "bad_signature", part: "secret", words: "another secret"},

		{name: "newline added", scheme: "github", arrived: jsonBody + "\n", reason: "bad_signature", part: "body", words: "newline was added"},
		{name: "newline removed", scheme: "github", body: jsonBody + "\n", arrived: jsonBody, reason: "bad_signature", part: "body", words: "newline at the end of the body was removed"},
		{name: "CRLF removed", scheme: "sendgrid-like", body: jsonBody + "\r\n", arrived: jsonBody, reason: "bad_signature", part: "body", words: "newline at the end of the body was removed"},
		{name: "CRLF became LF", scheme: "github", body: "{\r\n\"a\": 1\r\n}", arrived: "{\n\"a\": 1\n}", reason: "bad_signature", part: "body", words: "from CRLF to LF"},
		{name: "LF became CRLF", scheme: "github", body: "{\n\"a\": 1\n}", arrived: "{\r\n\"a\": 1\r\n}", reason: "bad_signature", part: "body", words: "from LF to CRLF"},
		{name: "indented", scheme: "github", body: `{"a":1,"b":[1,2]}`, arrived: "{\n \"a\": 1,\n \"b\": [1, 2]\n}", reason: "bad_signature", part: "body", words: "signed it compact"},
		{name: "compacted", scheme: "github", body: `{"a": 1, "b": [1, 2], "c": "x, y: \" z"}`, arrived: `{"a":1,"b":[1,2],"c":"x, y: \" z"}`, reason: "bad_signature", part: "body", words: "without its white space"},
		{name: "indentation lost", scheme: "github", body: "{\n  \"a\": 1\n}", arrived: `{"a":1}`, reason: "bad_signature", part: "body", words: "without its white space"},
		{name: "escapes decoded", scheme: "github", body: `{"a":"Jos\u00e9 \ud83d\udca9"}`, arrived: `{"a":"José 💩"}`, reason: "bad_signature", part: "body", words: "signed them as \\uXXXX"},
		{name: "escapes written", scheme: "github", body: `{"a": "José 💩"}`, arrived: `{"a": "Jos\u00e9 \ud83d\udca9"}`, reason: "bad_signature", part: "body", words: "were escaped as \\uXXXX"},
		{name: "slashes decoded", scheme: "meta", body: `{"a":"x\/y \u00e9"}`, arrived: `{"a":"x/y é"}`, reason: "bad_signature", part: "body", words: `signed them as \/`},
		{name: "slashes escaped", scheme: "github", body: `{"a":"x/y"}`, arrived: `{"a":"x\/y"}`, reason: "bad_signature", part: "body", words: `slashes were escaped`},
		{name: "HTML decoded", scheme: "github", body: `{"a":"\u003cb\u003e"}`, arrived: `{"a":"<b>"}`, reason: "bad_signature", part: "body", words: `\u003c`},
		{name: "keys sorted", scheme: "github", body: `{"a":1,"b":2}`, arrived: `{"b": 2, "a": 1}`, reason: "bad_signature", part: "body", words: "decoded and encoded again"},
		{name: "form sorted", scheme: "github", body: "a=1&b=x+y", arrived: "b=x%20y&a=1", reason: "bad_signature", part: "body", words: "form was decoded"},
		{name: "base64 of a gateway", scheme: "github", arrived: base64.StdEncoding.EncodeToString([]byte(jsonBody)), reason: "bad_signature", part: "body", words: "gateway"},
		{name: "UTF-8 twice", scheme: "github", body: `{"a":"é"}`, arrived: "{\"a\":\"Ã©\"}", reason: "bad_signature", part: "body", words: "UTF-8 twice"},

		{name: "ISO 8859-1", scheme: "github", body: `{"a":"é"}`, arrived: "{\"a\":\"\xe9\"}", reason: "bad_signature", part: "body", words: "ISO 8859-1"},
		{name: "JSON out of a form", scheme: "github", body: "payload=%7B%22a%22%3A%22x+y*%22%7D", arrived: `{"a":"x y*"}`, reason: "bad_signature", part: "body", words: "signed the form"},
		{name: "empty", scheme: "github", change: func(r *signing.Request) { r.Body = nil }, reason: "bad_signature", part: "body", words: "the body is empty"},
		{name: "hex for base64", scheme: "shopify", change: recoded("X-Shopify-Hmac-Sha256", ""), reason: "bad_signature", part: "header", words: "is in hex"},
		{name: "base64 for hex", scheme: "github", change: recoded("X-Hub-Signature-256", "sha256="), reason: "malformed_signature", part: "header", words: "is in base64"},
		{name: "milliseconds", scheme: "stripe", change: func(r *signing.Request) {
			mac := hmac.New(sha256.New, []byte(plainSecret))
			mac.Write([]byte("1769860800000." + jsonBody))
			r.Header.Set("Stripe-Signature", "t=1769860800000,v1="+hex.EncodeToString(mac.Sum(nil)))
		}, reason: "timestamp_outside_window", part: "timestamp", words: "as if it were in milliseconds"},

		{name: "old", scheme: "stripe", change: func(r *signing.Request) { r.Now = r.Now.Add(time.Hour) }, reason: "timestamp_outside_window", part: "timestamp", words: "3600 seconds old: signed 3600 s ago, allowed are 300 s"},
		{name: "ahead", scheme: "slack", change: func(r *signing.Request) { r.Now = r.Now.Add(-400 * time.Second) }, reason: "timestamp_outside_window", part: "timestamp", words: "400 seconds ahead"},
		{name: "no header", scheme: "github", change: func(r *signing.Request) { r.Header.Del("X-Hub-Signature-256") }, reason: "missing_signature", part: "header", words: "X-Hub-Signature-256 did not arrive"},
		{name: "nothing at all", scheme: "github", change: func(r *signing.Request) { r.Header = http.Header{} }, reason: "missing_signature", part: "header", words: "no headers"},
		{name: "other versions", scheme: "stripe", change: func(r *signing.Request) { r.Header.Set("Stripe-Signature", "t=1769860800,v0=00") }, reason: "malformed_signature", part: "header", words: "entries of t, v0"},
		{name: "two values", scheme: "github", change: func(r *signing.Request) { r.Header.Add("X-Hub-Signature-256", "sha256=00") }, reason: "duplicate_header", part: "header", words: "twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scheme := strings.Replace(tt.scheme, "sendgrid-like", "github", 1)
			theirs, ours := orDefault(tt.theirs, plainSecret), orDefault(tt.ours, plainSecret)
			body := orDefault(tt.body, jsonBody)
			r := signedBy(t, of(scheme, theirs), body)
			r.Body = []byte(orDefault(tt.arrived, body))
			if tt.change != nil {
				tt.change(r)
			}
			v := mustExplain(t, of(scheme, ours), r)
			if v.Proven || v.Reason != tt.reason || len(v.Causes) == 0 || v.Causes[0].Part != tt.part || !strings.Contains(v.Causes[0].Text, tt.words) {
				t.Errorf("explain = %+v, want %s: %s: …%s…", v, tt.reason, tt.part, tt.words)
			}
		})
	}
}

// recoded writes a signature behind a prefix in hex where it is base64, and the
// other way round.
func recoded(header, prefix string) func(*signing.Request) {
	return func(r *signing.Request) {
		text := strings.TrimPrefix(r.Header.Get(header), prefix)
		if mac, err := hex.DecodeString(text); err == nil {
			r.Header.Set(header, prefix+base64.StdEncoding.EncodeToString(mac))
			return
		}
		mac, _ := base64.StdEncoding.DecodeString(text)
		r.Header.Set(header, prefix+hex.EncodeToString(mac))
	}
}

// A form whose Content-Type was lost is told from a body of another kind.
func TestExplainFindsTheLostContentType(t *testing.T) {
	t.Parallel()
	o := of("twilio", plainSecret)
	o.PublicURL = "https://hooks.example.com/in/x"
	r := signedBy(t, o, "From=%2B1&Body=hello")
	r.Header.Del("Content-Type")
	v := mustExplain(t, o, r)
	if v.Proven || len(v.Causes) == 0 || v.Causes[0].Part != "header" || !strings.Contains(v.Causes[0].Text, "Content-Type must be application/x-www-form-urlencoded") {
		t.Errorf("explain = %+v, want the Content-Type", v)
	}
}

// mustExplain explains, and checks that nothing secret is said.
func mustExplain(t *testing.T, o signing.Options, r *signing.Request) verdict {
	t.Helper()
	v, err := explain(o, r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range o.Secrets {
		if core := strings.Trim(secret, " \n\""); len(core) > 4 && strings.Contains(string(text)+v.words(1), core) {
			t.Errorf("the verdict shows the secret: %s", text)
		}
	}
	return v
}

func TestExplainFindsTwoThingsTogether(t *testing.T) {
	t.Parallel()
	r := signedBy(t, of("stripe", plainSecret), `{"a": 1}`)
	r.Body, r.Now = []byte(`{"a":1}`), r.Now.Add(time.Hour)
	v := mustExplain(t, of("stripe", plainSecret+"\n"), r)
	var parts []string
	for _, c := range v.Causes {
		parts = append(parts, c.Part)
	}
	if diff := cmp.Diff([]string{"secret", "body", "timestamp"}, parts); diff != "" {
		t.Errorf("explain: parts (-want +got):\n%s", diff)
	}
}

func TestExplainNamesTheURLThatWasSigned(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, signed, configured string
		change                   func(*signing.Request)
		words                    string
	}{
		{"http behind TLS", "https://h.example.com/in/x", "http://h.example.com/in/x", nil, "should be https://h.example.com/in/x"},
		{"slash missing", "https://h.example.com/in/x/", "https://h.example.com/in/x", nil, "should be https://h.example.com/in/x/"},
		{"slash too many", "https://h.example.com/in/x", "https://h.example.com/in/x/", nil, "should be https://h.example.com/in/x"},
		{"path", "https://h.example.com/in/x", "https://h.example.com/", nil, "should be https://h.example.com/in/x"},
		{"port", "https://h.example.com/in/x", "https://h.example.com:8443/in/x", nil, "the port is not signed"},
		{"host", "https://pub.example.com/in/x", "https://internal/in/x", func(r *signing.Request) { r.Header.Set("X-Forwarded-Host", "pub.example.com, proxy") }, "should be https://pub.example.com/in/x"},
		{"query added", "https://h.example.com/in/x", "https://h.example.com/in/x", func(r *signing.Request) { r.RawQuery = "utm=1" }, "query is not signed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			theirs, ours := of("square", plainSecret), of("square", plainSecret)
			theirs.PublicURL, ours.PublicURL = tt.signed, tt.configured
			r := signedBy(t, theirs, jsonBody)
			if tt.change != nil {
				tt.change(r)
			}
			v := mustExplain(t, ours, r)
			if len(v.Causes) != 1 || v.Causes[0].Part != "url" || !strings.HasSuffix(v.Causes[0].Text, tt.words) && !strings.Contains(v.Causes[0].Text, tt.words) {
				t.Errorf("explain = %+v, want url: …%s", v, tt.words)
			}
		})
	}
}

func TestExplainNamesSchemesAndOptions(t *testing.T) {
	t.Parallel()
	r := signedBy(t, of("github", plainSecret), jsonBody)
	v := mustExplain(t, of("gitea", plainSecret), r)
	if text := v.words(1); !strings.Contains(text, "proven as scheme github") || !strings.Contains(text, "has X-Hub-Signature-256 instead") {
		t.Errorf("explain as gitea: %s", text)
	}
	theirs, ours := of("hmac", plainSecret), of("hmac", plainSecret)
	theirs.SchemeOptions = map[string]any{"header": "X-Sig", "encoding": "base64"}
	ours.SchemeOptions = map[string]any{"header": "X-Sig"}
	v = mustExplain(t, ours, signedBy(t, theirs, jsonBody))
	if text := v.words(1); !strings.Contains(text, "base64") {
		t.Errorf("explain with another encoding: %s", text)
	}
	theirs.SchemeOptions = map[string]any{"header": "X-Sig", "digest": "sha512"}
	v = mustExplain(t, ours, signedBy(t, theirs, jsonBody))
	if text := v.words(1); !strings.Contains(text, "scheme_options.digest should be sha512") {
		t.Errorf("explain with another digest: %s", text)
	}
}

// TestExplainAcceptsWhatIsProven: also handshakes, and the second secret.
func TestExplainAcceptsWhatIsProven(t *testing.T) {
	t.Parallel()
	o := signing.Options{Scheme: "stripe", Secrets: []string{"the-new-secret", plainSecret}}
	r := signedBy(t, of("stripe", plainSecret), jsonBody)
	r.Now = r.Now.Add(7 * time.Second)
	want := verdict{Proven: true, Class: "verified", Secret: 2, Skew: "7s"}
	if diff := cmp.Diff(want, mustExplain(t, o, r)); diff != "" {
		t.Errorf("explain (-want +got):\n%s", diff)
	}
	hello := &signing.Request{Method: http.MethodGet, Path: "/in/x", RawQuery: "challenge=abc", Header: http.Header{}, Now: signedAt}
	if v := mustExplain(t, of("dropbox", plainSecret), hello); v.Handshake != 200 || !v.Proven {
		t.Errorf("explain(handshake) = %+v", v)
	}
	if _, err := explain(of("github", " "), r); err == nil || !strings.Contains(err.Error(), "secrets[0]") {
		t.Errorf("explain with an empty secret: %v", err)
	}
}

// TestExplainSaysThatKeysAreFetched: verify is offline.
func TestExplainSaysThatKeysAreFetched(t *testing.T) {
	t.Parallel()
	o := signing.Options{Scheme: "plaid", SchemeOptions: map[string]any{"client_id": "c"}, Secrets: []string{plainSecret}}
	header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"6c5516e1-92dc-479e-a8ff-5a51992e0001"}`))
	r := &signing.Request{Method: http.MethodPost, Path: "/in/x", Body: []byte("{}"), Now: signedAt, Header: http.Header{
		"Plaid-Verification": {header + ".e30." + base64.RawURLEncoding.EncodeToString(make([]byte, 64))}}}
	v := mustExplain(t, o, r)
	if v.Reason != "key_not_available" || len(v.Causes) != 1 || !strings.Contains(v.Causes[0].Text, "--fetch") {
		t.Errorf("explain = %+v", v)
	}
}

// FuzzExplain: whatever arrives, explaining ends and accepts no forgery.
func FuzzExplain(f *testing.F) {
	f.Add([]byte(jsonBody), "t=1,v1=00")
	f.Add([]byte(`{"a":"\ud83d"}`), "v1=")
	f.Add([]byte("a=1&b=%zz"), "")
	f.Fuzz(func(t *testing.T, body []byte, header string) {
		r := &signing.Request{Method: http.MethodPost, Path: "/in/x", Body: body, Now: signedAt, Header: http.Header{"Stripe-Signature": {header}}}
		v, err := explain(of("stripe", plainSecret), r)
		if err != nil || v.Proven {
			t.Errorf("explain = %+v, %v", v, err)
		}
	})
}
