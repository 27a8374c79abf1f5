package signing_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/signing"
)

func hmacHex(message string) string {
	m := hmac.New(sha256.New, []byte(derivedSecret))
	m.Write([]byte(message))
	return hex.EncodeToString(m.Sum(nil))
}

// TestMessageTemplate signs what the template is expected to give.
func TestMessageTemplate(t *testing.T) {
	t.Parallel()
	type request struct {
		query, contentType, body, x string
	}
	tests := []struct {
		name, message string
		r             request
		want          string // the signed text, or
		reason        signing.Reason
	}{
		{name: "all simple", message: "{method} {path} {url} {body_sha256} {body}", r: request{query: "a=1", body: "B"}, want: "POST /in/abc https://hooks.example.com/in/abc?a=1 df7e70e5021544f4834bbee64a9e3789febc4be81470df629cad6ddb03320a5c B"},
		{name: "literals", message: "{{}}[[]]{body}", r: request{body: "b"}, want: "{}[]b"},
		{name: "lower", message: "{header:X-H|lower}{query:q|lower}{body|lower}", r: request{query: "q=%C3%89A", x: "AbC", body: "XyÉ"}, want: "abcéaxyé"},
		{name: "query decoded", message: "{query:data.id}{body}", r: request{query: "data.id=a%2Bb+c"}, want: "a+b c"},
		{name: "json", message: "{json:a.b.0}{body}", r: request{body: `{"a":{"b":[9007199254740993]}}`}, want: `9007199254740993{"a":{"b":[9007199254740993]}}`},
		{name: "form", message: "{form}", r: request{contentType: form, body: "b=2&a=1&b=1&b=2&%20=+"}, want: "  a1b1b2"},
		{name: "form that does not parse", message: "{form}", r: request{contentType: form, body: "a=1;b"}, reason: signing.ReasonMalformedBody},
		{name: "form in another type", message: "{form}", r: request{body: "a=1"}, reason: signing.ReasonMissingPart},
		{name: "empty form", message: "x{form}", r: request{contentType: form}, want: "x"},
		{name: "empty body", message: "{body}.", r: request{}, want: "."},
		{name: "absent header", message: "{header:X-H}{body}", r: request{body: "b"}, reason: signing.ReasonMissingPart},
		{name: "absent query", message: "{query:x}{body}", r: request{body: "b", query: "x="}, reason: signing.ReasonMissingPart},
		{name: "query twice", message: "{query:x}{body}", r: request{body: "b", query: "x=1&x=2"}, reason: signing.ReasonMissingPart},
		{name: "absent json", message: "{json:x}{body}", r: request{body: `{"x":null}`}, reason: signing.ReasonMissingPart},
		{name: "manifest, all segments", message: "[id:{query:data.id|lower};][request-id:{header:X-H};]b:{body};", r: request{query: "data.id=AB", x: "r1", body: "b"}, want: "id:ab;request-id:r1;b:b;"},
		{name: "manifest, one left out", message: "[id:{query:data.id|lower};][request-id:{header:X-H};]b:{body};", r: request{x: "r1", body: "b"}, want: "request-id:r1;b:b;"},
		{name: "segment with two placeholders", message: "[{query:a}{query:b}]{body}", r: request{query: "a=1", body: "b"}, want: "b"},
		{name: "segment end and literal", message: "[{query:a}]]]{body}", r: request{query: "a=1", body: "b"}, want: "1]b"},
	}
	for _, tt := range tests {
		v, problems := signing.New(signing.Options{Scheme: "hmac", Secrets: []string{derivedSecret}, PublicURL: derivedURL, SchemeOptions: opts("header", "X-Sig", "message", tt.message)})
		if len(problems) > 0 {
			t.Errorf("%s: New = %v", tt.name, problems)
			continue
		}
		h := http.Header{"X-Sig": {hmacHex(tt.want)}, "Content-Type": {tt.r.contentType}}
		if tt.r.x != "" {
			h.Set("X-H", tt.r.x)
		}
		_, err := v.Verify(&signing.Request{Method: "POST", Path: "/proxied", RawQuery: tt.r.query, Header: h, Body: []byte(tt.r.body)})
		var rejection *signing.Rejection
		if errors.As(err, &rejection); tt.reason != "" && (rejection == nil || rejection.Reason != tt.reason) || tt.reason == "" && err != nil {
			t.Errorf("%s: Verify = %v, want %q", tt.name, err, tt.reason)
		}
	}
}

// Without public_url the path is the one received.
func TestMessagePath(t *testing.T) {
	t.Parallel()
	v, problems := signing.New(signing.Options{Scheme: "hmac", Secrets: []string{derivedSecret}, SchemeOptions: opts("header", "X-Sig", "message", "{path}{body}")})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	r := &signing.Request{Method: "POST", Path: "/in/a%2Fb", Header: http.Header{"X-Sig": {hmacHex("/in/a%2Fbx")}}, Body: []byte("x")}
	if _, err := v.Verify(r); err != nil {
		t.Errorf("Verify = %v", err)
	}
}

// A header of the message with two values is refused, even where it is
// optional: a proxy may take the other one.
func TestMessageHeaderConflict(t *testing.T) {
	t.Parallel()
	v, _ := signing.New(signing.Options{Scheme: "hmac", Secrets: []string{derivedSecret}, SchemeOptions: opts("header", "X-Sig", "message", "[{header:X-H}]{body}")})
	for _, tt := range []struct {
		values []string
		signed string
		ok     bool
	}{{[]string{"a", "a"}, "ax", true}, {[]string{"a", "b"}, "ax", false}, {[]string{"a", "b"}, "x", false}, {nil, "x", true}} {
		r := &signing.Request{Method: "POST", Header: http.Header{"X-Sig": {hmacHex(tt.signed)}, "X-H": tt.values}, Body: []byte("x")}
		if _, err := v.Verify(r); (err == nil) != tt.ok {
			t.Errorf("Verify(X-H %q, signed %q) = %v, want ok %t", tt.values, tt.signed, err, tt.ok)
		}
	}
}

// TestSignatureInBody: Mailgun's scheme, whose signature stands in the JSON
// and leaves the rest of the body open.
func TestSignatureInBody(t *testing.T) {
	t.Parallel()
	v, problems := signing.New(signing.Options{Scheme: "hmac", Secrets: []string{derivedSecret}, SchemeOptions: opts(
		"json", "signature.signature", "message", "{timestamp}{json:signature.token}", "timestamp", opts("json", "signature.timestamp"))})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	body := `{"signature":{"timestamp":"1700000000","token":"tok_0123456789","signature":"ede40c5e1ccd8631ef2985faf0bb75d8832da3fe33d9303eee511bcb03e6b627"},"x":1}`
	r := &signing.Request{Method: "POST", Header: http.Header{}, Body: []byte(body), Now: time.Unix(derivedNow, 0)}
	if proof, err := v.Verify(r); err != nil || proof.Class != signing.Authenticated {
		t.Errorf("Verify = %+v, %v, want class authenticated, as the body is not covered", proof, err)
	}
	for _, body := range []string{`{}`, ``, `{"signature":{"timestamp":1700000000,"signature":"00"}}`, `{"signature":{"signature":"00","token":"a"}}`} {
		r.Body = []byte(body)
		if proof, err := v.Verify(r); err == nil {
			t.Errorf("Verify(%s) = %+v, want a rejection", body, proof)
		}
	}
}

func TestSignatureInForm(t *testing.T) {
	t.Parallel()
	v, problems := signing.New(signing.Options{Scheme: "hmac", Secrets: []string{derivedSecret}, SchemeOptions: opts("form", "sig", "message", "{query:id}.{timestamp}", "format", "positional")})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	r := &signing.Request{Method: "POST", RawQuery: "id=7", Header: http.Header{"Content-Type": {form}}, Now: time.Unix(derivedNow, 0)}
	r.Body = []byte("sig=1700000000%2C" + hmacHex("7.1700000000"))
	if _, err := v.Verify(r); err != nil {
		t.Errorf("Verify = %v", err)
	}
	r.Body = append(r.Body, "&sig=1700000000%2C00"...)
	if proof, err := v.Verify(r); err == nil {
		t.Errorf("Verify(two signatures) = %+v, want a rejection", proof)
	}
}

// tolerance 0s turns the window off, not the form of the timestamp.
func TestNoWindow(t *testing.T) {
	t.Parallel()
	v, problems := signing.New(signing.Options{Scheme: "slack", Secrets: []string{derivedSecret}, SchemeOptions: opts("tolerance", "0s")})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for stamp, want := range map[string]bool{"1": true, "99999999999999999999": true, "1.5": false, "": false} {
		r := &signing.Request{Method: "POST", Header: http.Header{"X-Slack-Request-Timestamp": {stamp}, "X-Slack-Signature": {"v0=" + hmacHex("v0:"+stamp+":x")}}, Body: []byte("x"), Now: time.Unix(derivedNow, 0)}
		if _, err := v.Verify(r); (err == nil) != want {
			t.Errorf("Verify(timestamp %q) = %v, want ok %t", stamp, err, want)
		}
	}
}

// A stamp of whole seconds is judged in whole seconds, whatever fraction of
// a second the receiver's clock shows.
func TestWindowInWholeSeconds(t *testing.T) {
	t.Parallel()
	v, _ := signing.New(signing.Options{Scheme: "slack", Secrets: []string{derivedSecret}, SchemeOptions: opts("tolerance", "10s")})
	for skew, want := range map[time.Duration]bool{
		10*time.Second + 999*time.Millisecond: true, 11 * time.Second: false,
		-10 * time.Second: true, -10*time.Second - time.Millisecond: false, -11 * time.Second: false,
	} {
		r := &signing.Request{Method: "POST", Header: http.Header{"X-Slack-Request-Timestamp": {"1700000000"}, "X-Slack-Signature": {"v0=" + hmacHex("v0:1700000000:")}}, Now: time.Unix(derivedNow, 0).Add(skew)}
		proof, err := v.Verify(r)
		if (err == nil) != want {
			t.Errorf("Verify(received after %s) = %v, want ok %t", skew, err, want)
		}
		if err == nil && proof.Skew != skew {
			t.Errorf("Verify(received after %s): Skew = %s", skew, proof.Skew)
		}
	}
}
