package signing_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/queenbridge/queenbridge/signing"
)

// What was received is verified as it is: bytes that are no text, headers in
// ISO 8859-1, bodies that re-encoding would change.
func TestBytesAreVerifiedAsReceived(t *testing.T) {
	t.Parallel()
	o := signing.Options{Scheme: "hmac", Secrets: []string{derivedSecret}, SchemeOptions: opts("header", "X-Sig", "message", "{header:X-H}{query:q}{body}")}
	v, _ := signing.New(o)
	for _, body := range []string{"\xff\x00", "\ufeff{}", `{"a":"\u0000\ud800","b":"<&>` + "\u2028" + `"}`, "line\r\n", ""} {
		r := &signing.Request{Method: "POST", RawQuery: "q=%E9", Header: http.Header{"X-H": {"caf\xe9"}}, Body: []byte(body)}
		r.Header.Set("X-Sig", hmacHex("caf\xe9\xe9"+body))
		if _, err := v.Verify(r); err != nil {
			t.Errorf("Verify(%q) = %v", body, err)
		}
		r.Header.Set("X-H", "café")
		if proof, err := v.Verify(r); err == nil {
			t.Errorf("Verify(%q, header re-encoded) = %+v, want a rejection", body, proof)
		}
	}
}

// A form that does not parse as a whole is refused, whoever signed what.
func TestTwilioFormErrors(t *testing.T) {
	t.Parallel()
	v, _ := signing.New(signing.Options{Scheme: "twilio", Secrets: []string{"s"}, PublicURL: derivedURL})
	for _, body := range []string{"a=1;b=2", "a=%zz", "a=%4", strings.Repeat("a&", 10_001)} {
		r := &signing.Request{Method: "POST", Header: http.Header{"Content-Type": {form}, "X-Twilio-Signature": {"AAAA"}}, Body: []byte(body)}
		_, err := v.Verify(r)
		var rejection *signing.Rejection
		if !errors.As(err, &rejection) || rejection.Reason != signing.ReasonMalformedBody {
			t.Errorf("Verify(%.20q) = %v, want %s", body, err, signing.ReasonMalformedBody)
		}
	}
}

// The digest in the query must be there, once, and be that of the body.
func TestTwilioBodyDigest(t *testing.T) {
	t.Parallel()
	o := signing.Options{Scheme: "twilio", Secrets: []string{"12345"}, PublicURL: twilioURL}
	v, _ := signing.New(o)
	for _, query := range []string{"", "bodySHA256=", "bodySHA256=00", "bodysha256=0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620", "bodySHA256=0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620&bodySHA256=00"} {
		r := &signing.Request{Method: "POST", RawQuery: query, Header: http.Header{}, Body: []byte(`{"property": "value", "boolean": true}`)}
		// Sign the URL as it stands: only the digest is wrong.
		get := &signing.Request{Method: "GET", RawQuery: query, Header: http.Header{}}
		if err := signing.Forge(o, get); err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Twilio-Signature", get.Header.Get("X-Twilio-Signature"))
		if proof, err := v.Verify(r); err == nil {
			t.Errorf("Verify(query %q) = %+v, want a rejection", query, proof)
		}
	}
}

// encoding/base64 skips line breaks and stray bits; a signature has only one
// spelling all the same.
func TestBase64Spelling(t *testing.T) {
	t.Parallel()
	v, _ := signing.New(signing.Options{Scheme: "hmac", Secrets: []string{"Convoy"}, SchemeOptions: opts("json", "sig", "encoding", "base64", "message", "{query:q}")})
	const signature = "16FUVH58NeMcTIIOICN2UJOcPTTa4TbjCndXymGrtM8="
	for sig, want := range map[string]bool{
		signature: true, signature[:10] + `\r\n` + signature[10:]: false, signature + `\n`: false,
		strings.Replace(signature, "M8=", "M9=", 1): false, strings.ReplaceAll(signature, "/", "_") + " ": false,
	} {
		r := &signing.Request{Method: "POST", RawQuery: "q=Test+Payload+Body", Body: []byte(`{"sig":"` + sig + `"}`)}
		if _, err := v.Verify(r); (err == nil) != want {
			t.Errorf("Verify(%s) = %v, want ok %t", sig, err, want)
		}
	}
}

// One verifier serves all requests of a source at once.
func TestVerifyConcurrently(t *testing.T) {
	t.Parallel()
	for _, s := range subjects() {
		v := s.verifier(t, secretB, secretA)
		good, bad := s.accepted(t), s.accepted(t)
		bad.Body = append(bad.Body, ' ')
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 50 {
					if _, err := v.Verify(good); err != nil {
						t.Errorf("Verify(%s) = %v", s.name, err)
					}
					if _, err := v.Verify(bad); err == nil {
						t.Errorf("Verify(%s, changed) was accepted", s.name)
					}
				}
			})
		}
		wg.Wait()
	}
}
