package signing_test

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/signing"
)

// benchRequest is a forged request with a body of the given size.
func benchRequest(b *testing.B, o signing.Options, size int) (*signing.Verifier, *signing.Request) {
	b.Helper()
	body := append([]byte(`{"Message":"m","account":"acct_1","id":"evt_1","type":"invoice.paid","data":"`), bytes.Repeat([]byte("x"), size)...)
	r := &signing.Request{Method: http.MethodPost, Path: "/in/x", Header: http.Header{}, Body: append(body, `"}`...), Now: time.Unix(1700000000, 0)}
	if o.Scheme == "twilio" {
		r.Header.Set("Content-Type", form)
		r.Body = []byte(derivedForm)
	}
	if err := signing.Forge(o, r); err != nil {
		b.Fatal(err)
	}
	v, problems := signing.New(o)
	if len(problems) > 0 {
		b.Fatal(problems)
	}
	return v, r
}

func BenchmarkVerify(b *testing.B) {
	for _, scheme := range []string{"github", "stripe", "standard-webhooks", "svix", "shopify", "slack", "gitlab-token", "twilio"} {
		b.Run(scheme, func(b *testing.B) {
			v, r := benchRequest(b, signing.Options{Scheme: scheme, Secrets: []string{secretA}, PublicURL: derivedURL}, 2000)
			b.SetBytes(int64(len(r.Body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Verify(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkVerifyPublicKey: schemes with public keys, pinned.
func BenchmarkVerifyPublicKey(b *testing.B) {
	for _, scheme := range []string{"sendgrid", "discord", "wise", "aws-sns", "paypal", "google-pubsub", "plaid", "ebay"} {
		b.Run(scheme, func(b *testing.B) {
			o := optionsFor(b, scheme)
			v, r := benchRequest(b, o, 2000)
			b.SetBytes(int64(len(r.Body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Verify(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkValues(b *testing.B) {
	v, r := benchRequest(b, signing.Options{Scheme: "stripe", Secrets: []string{secretA}}, 2000)
	b.SetBytes(int64(len(r.Body)))
	b.ReportAllocs()
	for b.Loop() {
		values := v.Values(r)
		for _, path := range []string{"account", "id", "type"} {
			if _, ok := values.JSON(path); !ok {
				b.Fatal(path)
			}
		}
	}
}
