package signing_test

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queenbridge/queenbridge/signing"
)

// forged is a request that a scheme's own Forge made.
func forged(t *testing.T, o signing.Options, body string) *signing.Request {
	t.Helper()
	r := &signing.Request{Method: "POST", Path: "/in/abc", Header: http.Header{}, Body: []byte(body), Now: time.Unix(derivedNow, 0)}
	if err := signing.Forge(o, r); err != nil {
		t.Fatalf("Forge = %v", err)
	}
	return r
}

// evilURLs are URLs that look like those of Amazon SNS; an attacker's key is
// pinned under each, and may still not count.
var evilURLs = []string{
	"http://sns.us-east-1.amazonaws.com/a.pem", "https://evil.example/a.pem", "https://evilsns.us-east-1.amazonaws.com/a.pem", "https://s3.us-east-1.amazonaws.com/evil/a.pem",
	"https://sns.us-east-1.amazonaws.com.evil.example/a.pem", "https://sns.us-east-1.amazonaws.com/a.txt", "https://sns.us-east-1.amazonaws.com:8443/a.pem",
	"https://sns.us-east-1.amazonaws.com@evil.example/a.pem", "https://user@sns.us-east-1.amazonaws.com/a.pem", "https://sns.us-east-1.evil.amazonaws.com/a.pem",
	"https://sns.us-east-1.amazonaws.com/a.pem?x", "https://sns.us-east-1.amazonaws.com/a.pem#.pem", "https://sns.us-east-1.amazonaws.com/../a.pem", "HTTPS://sns.us-east-1.amazonaws.com/a.pem",
	"https://sns.us-east-1.amazonaws.com/a.pem\n", "https://sns.u.amazonaws.com/a.pem",
}

func TestSNSCertificateURL(t *testing.T) {
	t.Parallel()
	k := keysOnce()
	keys := opts(snsCert, pemOf(k.rsa[0].Public()), "https://sns.cn-north-1.amazonaws.com.cn/x/a_b-c.pem", pemOf(k.rsa[0].Public()))
	for _, address := range evilURLs {
		keys[address] = pemOf(k.rsa[0].Public())
	}
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	o := signing.Options{Scheme: "aws-sns", SchemeOptions: opts("topics", snsTopic, "keys", keys), ForgeKey: k.rsa[0], Fetcher: p.fetcher(t, newClock())}
	v, problems := signing.New(o)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for address := range keys {
		o.ForgeKeyID = address
		proof, err := v.Verify(forged(t, o, `{"Message":"m"}`))
		reason := signing.Reason("")
		if slices.Contains(evilURLs, address) {
			reason = signing.ReasonUnknownKey
		}
		if checkReason(t, proof, err, reason); t.Failed() {
			t.Fatal(address)
		}
	}
	if p.count() != 0 || len(p.dialed) != 0 {
		t.Errorf("%d requests to %v: a URL of the sender's was fetched", p.count(), p.dialed)
	}
}

// What Amazon SNS signs: every member must be as it was.
func TestSNSMessage(t *testing.T) {
	t.Parallel()
	o := optionsFor(t, "aws-sns")
	v, _ := signing.New(o)
	const members = `"Message":"h\u00e9 \ud83d\udca9\n","Subject":"s","MessageId":"1","Timestamp":"2026-01-02T03:04:05.000Z"`
	for _, version := range []string{"1", "2"} {
		signed := string(forged(t, o, "{"+members+`,"SignatureVersion":"`+version+`"}`).Body)
		proof, err := v.Verify(&signing.Request{Method: "POST", Header: http.Header{"Content-Type": {"text/plain; charset=UTF-8"}}, Body: []byte(signed)})
		if err != nil || proof.Class != signing.Verified || proof.Secret != -1 {
			t.Fatalf("Verify(version %s) = %+v, %v", version, proof, err)
		}
		for from, to := range map[string]string{
			`"Subject":"s"`: `"Subject":"t"`, `"Subject":"s",`: "", `"MessageId":"1"`: `"MessageId":"2"`, "h\\u00e9": "x", "04:05": "04:06", snsTopic: snsTopic + "2", `"Notification"`: `"SubscriptionConfirmation"`,
			`"SignatureVersion":"` + version: `"SignatureVersion":"3`, `"MessageId":"1",`: `"MessageId":"1","MessageId":"2",`, `"Signature":"`: `"Signature":"A`, snsCert: "https://sns.us-east-1.amazonaws.com/x.pem",
			`"Message":"`: `"Message":1,"x":"`,
		} {
			changed := strings.Replace(signed, from, to, 1)
			if changed == signed {
				t.Fatalf("nothing to replace: %s in %s", from, signed)
			}
			if proof, err := v.Verify(&signing.Request{Method: "POST", Body: []byte(changed)}); err == nil {
				t.Errorf("Verify(version %s, %s → %s) = %+v, want a rejection", version, from, to, proof)
			}
		}
		// What is not signed may differ, and the same member twice is fine.
		for _, same := range []string{strings.Replace(signed, `"MessageId":"1",`, `"MessageId":"1","MessageId":"\u0031",`, 1), strings.Replace(signed, "{", `{"UnsubscribeURL":"x",`, 1)} {
			if _, err := v.Verify(&signing.Request{Method: "POST", Body: []byte(same)}); err != nil {
				t.Errorf("Verify(%s) = %v", same, err)
			}
		}
	}
	// Raw message delivery has no signature; a form is not a message.
	for _, body := range []string{"", "hello", "[]", `{"Message":"m"}`, "payload=" + string(forged(t, o, `{"Message":"m"}`).Body)} {
		if proof, err := v.Verify(&signing.Request{Method: "POST", Header: http.Header{"Content-Type": {form}}, Body: []byte(body)}); err == nil {
			t.Errorf("Verify(%s) = %+v, want a rejection", body, proof)
		}
	}
}

// A certificate of Amazon SNS is fetched once; one out of date, or no
// certificate, is no verdict.
func TestSNSFetch(t *testing.T) {
	t.Parallel()
	k, c := keysOnce(), newClock()
	var file atomic.Value
	file.Store(selfSigned(t, k.rsa[0], "sns.amazonaws.com"))
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, file.Load()) })
	o := signing.Options{Scheme: "aws-sns", SchemeOptions: opts("topics", snsTopic), ForgeKey: k.rsa[0], ForgeKeyID: snsCert, Fetcher: p.fetcher(t, c, "sns.us-east-1.amazonaws.com")}
	v, problems := signing.New(o)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for range 3 {
		proof, err := v.Verify(forged(t, o, `{"Message":"m"}`))
		checkReason(t, proof, err, "")
	}
	if p.count() != 1 || p.requests[0] != "GET "+snsCert || p.dialed[0] != "sns.us-east-1.amazonaws.com:443" {
		t.Errorf("requests %q to %q, want one", p.requests, p.dialed)
	}
	wrong := o
	wrong.ForgeKey = k.rsa[1]
	proof, err := v.Verify(forged(t, wrong, `{"Message":"m"}`))
	checkReason(t, proof, err, badSig)
	foreign := forged(t, o, `{"Message":"m","TopicArn":"arn:aws:sns:us-east-1:999999999999:evil","SigningCertURL":"https://sns.us-east-1.amazonaws.com/other.pem"}`)
	proof, err = v.Verify(foreign)
	if checkReason(t, proof, err, signing.ReasonNotAllowed); p.count() != 1 {
		t.Error("a certificate was fetched for a topic that is not allowed")
	}
	for _, bad := range []string{"no certificate", pemOf(k.rsa[0].Public()), ""} {
		c.advance(25 * time.Hour)
		file.Store(bad)
		checkFetchError(t, v, forged(t, o, `{"Message":"m"}`))
	}
	c.advance(25 * time.Hour)
	file.Store(selfSigned(t, k.rsa[0], "sns.amazonaws.com"))
	late := forged(t, o, `{"Message":"m"}`)
	late.Now = late.Now.Add(2 * time.Hour) // after the certificate's last hour
	checkFetchError(t, v, late)
}

// payPalRequest is signed by hand.
func payPalRequest(t *testing.T, key *rsa.PrivateKey, body string, change map[string]string) *signing.Request {
	t.Helper()
	h := map[string]string{
		"Paypal-Transmission-Id": "69cd13f0-d67a-11e5-baa3-778b53f4ae55", "Paypal-Transmission-Time": "2023-11-14T22:13:20Z", "Paypal-Cert-Url": payPalCert, "Paypal-Auth-Algo": "SHA256withRSA",
	}
	message := fmt.Sprintf("%s|%s|1JE4291016473214C|%d", h["Paypal-Transmission-Id"], h["Paypal-Transmission-Time"], crc32.ChecksumIEEE([]byte(body)))
	if body == derivedBody && !strings.HasSuffix(message, "|3900517903") {
		t.Fatalf("message %q, want the published checksum", message)
	}
	sum := sha256.Sum256([]byte(message))
	sig, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	r := &signing.Request{Method: "POST", Header: http.Header{"Paypal-Transmission-Sig": {base64.StdEncoding.EncodeToString(sig)}}, Body: []byte(body), Now: time.Unix(derivedNow, 0)}
	for name, value := range h {
		r.Header.Set(name, value)
	}
	for name, value := range change {
		r.Header.Set(name, value)
	}
	return r
}

func TestPayPal(t *testing.T) {
	t.Parallel()
	k := keysOnce()
	o := optionsFor(t, "paypal")
	o.SchemeOptions["keys"].(map[string]any)["https://evil.example/v1/notifications/certs/CERT-1"] = pemOf(k.rsa[0].Public())
	v, problems := signing.New(o)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, tt := range []struct {
		change map[string]string
		reason signing.Reason
	}{
		{nil, ""},
		{map[string]string{"Paypal-Transmission-Id": "x"}, badSig},
		{map[string]string{"Paypal-Transmission-Id": ""}, signing.ReasonMissingPart},
		{map[string]string{"Paypal-Transmission-Time": "2023-11-14T22:13:21Z"}, badSig},
		{map[string]string{"Paypal-Transmission-Sig": ""}, noSig},
		{map[string]string{"Paypal-Transmission-Sig": "!"}, malSig},
		{map[string]string{"Paypal-Auth-Algo": "SHA1withRSA"}, signing.ReasonUnsupported},
		{map[string]string{"Paypal-Auth-Algo": ""}, signing.ReasonUnsupported},
		{map[string]string{"Paypal-Cert-Url": ""}, signing.ReasonMissingPart},
		{map[string]string{"Paypal-Cert-Url": payPalCert + "2"}, signing.ReasonUnknownKey},
		{map[string]string{"Paypal-Cert-Url": "https://evil.example/v1/notifications/certs/CERT-1"}, signing.ReasonUnknownKey},
	} {
		proof, err := v.Verify(payPalRequest(t, k.rsa[0], derivedBody, tt.change))
		if checkReason(t, proof, err, tt.reason); t.Failed() {
			t.Fatal(tt.change)
		}
	}
	r := payPalRequest(t, k.rsa[0], derivedBody, nil)
	r.Body = append(r.Body, ' ')
	proof, err := v.Verify(r)
	checkReason(t, proof, err, badSig)
	proof, err = v.Verify(payPalRequest(t, k.rsa[1], derivedBody, nil))
	checkReason(t, proof, err, badSig)
	r = payPalRequest(t, k.rsa[0], derivedBody, nil)
	r.Header.Add("Paypal-Cert-Url", "https://evil.example/")
	proof, err = v.Verify(r)
	checkReason(t, proof, err, dup)
	o.SchemeOptions["webhook_id"] = "another"
	v, _ = signing.New(o)
	proof, err = v.Verify(payPalRequest(t, k.rsa[0], derivedBody, nil))
	checkReason(t, proof, err, badSig)
}

// A fetched certificate of PayPal must come with its chain.
func TestPayPalFetch(t *testing.T) {
	t.Parallel()
	k := keysOnce()
	ca := newAuthority(t)
	var file atomic.Value
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, file.Load()) })
	for name, tt := range map[string]struct {
		file string
		ok   bool
	}{
		"good":             {pemCert(ca.issue(t, k.rsa[0].Public(), x509.Certificate{Subject: pkix.Name{CommonName: "messageverificationcerts.paypal.com"}})), true},
		"by DNS name":      {pemCert(ca.issue(t, k.rsa[0].Public(), x509.Certificate{DNSNames: []string{"messageverificationcerts.sandbox.paypal.com"}})), true},
		"another name":     {pemCert(ca.issue(t, k.rsa[0].Public(), x509.Certificate{Subject: pkix.Name{CommonName: "evilpaypal.com"}})), false},
		"out of date":      {pemCert(ca.issue(t, k.rsa[0].Public(), x509.Certificate{Subject: pkix.Name{CommonName: "x.paypal.com"}, NotBefore: time.Unix(1, 0), NotAfter: time.Unix(derivedNow-1, 0)})), false},
		"nobody issued it": {selfSigned(t, k.rsa[0], "messageverificationcerts.paypal.com"), false},
	} {
		file.Store(tt.file)
		f := p.fetcher(t, newClock(), "api.paypal.com")
		v, problems := signing.New(signing.Options{Scheme: "paypal", SchemeOptions: opts("webhook_id", "1JE4291016473214C"), Fetcher: f})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		r := payPalRequest(t, k.rsa[0], "{}", nil)
		if tt.ok {
			proof, err := v.Verify(r)
			checkReason(t, proof, err, "")
		} else {
			checkFetchError(t, v, r)
		}
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// plaidKey is the answer of Plaid's API.
func plaidKey(id string, public crypto.PublicKey, expired string) string {
	var set struct{ Keys []json.RawMessage }
	if err := json.Unmarshal([]byte(jwksOf(map[string]crypto.PublicKey{id: public})), &set); err != nil {
		panic(err)
	}
	return `{"key":` + strings.Replace(string(set.Keys[1]), "{", `{"expired_at":`+expired+",", 1) + `,"request_id":"x"}`
}

// Plaid's key is asked for by id, of the environment the secret belongs to.
func TestPlaidFetch(t *testing.T) {
	t.Parallel()
	k, c := keysOnce(), newClock()
	expired := atomic.Value{}
	expired.Store("null")
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var in map[string]string
		if json.Unmarshal(body, &in) != nil || r.Host != "sandbox.plaid.com" || in["client_id"] != "client" || in["secret"] != "s3cret" || in["key_id"] == "down" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, plaidKey(in["key_id"], k.ec[0].Public(), expired.Load().(string)))
	})
	o := signing.Options{
		Scheme: "plaid", Secrets: []string{"s3cret"}, SchemeOptions: opts("client_id", "client"), ForgeKey: k.ec[0], ForgeKeyID: "6c5516e1-92dc-479e-a8ff-5a51992e0001",
		Fetcher: p.fetcher(t, c, "production.plaid.com", "sandbox.plaid.com"),
	}
	v, problems := signing.New(o)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for range 2 {
		proof, err := v.Verify(forged(t, o, `{"webhook_type":"ITEM"}`))
		if checkReason(t, proof, err, ""); proof.Class != signing.Verified {
			t.Errorf("Verify: class %s", proof.Class)
		}
	}
	want := []string{"POST https://production.plaid.com/webhook_verification_key/get", "POST https://sandbox.plaid.com/webhook_verification_key/get"}
	if !slices.Equal(p.requests, want) {
		t.Errorf("requests %q, want %q", p.requests, want)
	}
	wrong := o
	wrong.ForgeKey = k.ec[1]
	proof, err := v.Verify(forged(t, wrong, "{}"))
	checkReason(t, proof, err, badSig)
	old := forged(t, o, "{}")
	old.Now = old.Now.Add(301 * time.Second)
	proof, err = v.Verify(old)
	checkReason(t, proof, err, late)
	changed := forged(t, o, "{}")
	changed.Body = []byte("{} ")
	proof, err = v.Verify(changed)
	checkReason(t, proof, err, badSig)
	expired.Store("1600000000")
	o.ForgeKeyID = "expired"
	proof, err = v.Verify(forged(t, o, "{}"))
	checkReason(t, proof, err, signing.ReasonUnknownKey)
	o.ForgeKeyID = "down"
	checkFetchError(t, v, forged(t, o, "{}"))
	o.ForgeKeyID = "../../evil"
	before := p.count()
	proof, err = v.Verify(forged(t, o, "{}"))
	if checkReason(t, proof, err, signing.ReasonUnknownKey); p.count() != before {
		t.Error("a key id of the sender's own making was sent to Plaid")
	}
	o.SchemeOptions = opts("keys", opts("k", pemOf(k.ec[0].Public())))
	o.Secrets, o.ForgeKeyID = nil, "unknown"
	v, problems = signing.New(o)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	checkFetchError(t, v, forged(t, o, "{}"))
}

// eBay's key is asked for with a token of the application.
func TestEBayFetch(t *testing.T) {
	t.Parallel()
	k := keysOnce()
	key := strings.ReplaceAll(pemOf(k.ec[0].Public()), "\n", "") // as eBay's API sends it
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case r.Host == "api.sandbox.ebay.com" && r.URL.Path == "/identity/v1/oauth2/token" && user == "App-SBX-1" && password == "s3cret":
			fmt.Fprint(w, `{"access_token":"t0ken","expires_in":7200}`)
		case r.URL.Path == "/commerce/notification/v1/public_key/kid-1" && r.Header.Get("Authorization") == "Bearer t0ken":
			fmt.Fprintf(w, `{"algorithm":"ECDSA","digest":"SHA1","key":%q}`, key)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	o := signing.Options{
		Scheme: "ebay", Secrets: []string{"s3cret"}, PublicURL: derivedURL, SchemeOptions: opts("client_id", "App-SBX-1", "verification_token", "v"), ForgeKey: k.ec[0], ForgeKeyID: "kid-1",
		Fetcher: p.fetcher(t, newClock(), "api.sandbox.ebay.com"),
	}
	v, problems := signing.New(o)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for range 2 {
		proof, err := v.Verify(forged(t, o, "{}"))
		checkReason(t, proof, err, "")
	}
	if p.count() != 2 {
		t.Errorf("requests %q, want a token and a key", p.requests)
	}
	changed := forged(t, o, "{}")
	changed.Body = []byte("{} ")
	proof, err := v.Verify(changed)
	checkReason(t, proof, err, badSig)
	for header, reason := range map[string]signing.Reason{"": noSig, "!": malSig, "e30=": malSig, base64.StdEncoding.EncodeToString([]byte(`{"kid":"../x","signature":"AAAA"}`)): signing.ReasonUnknownKey, base64.StdEncoding.EncodeToString([]byte(`{"kid":"kid-1","signature":"!"}`)): malSig} {
		r := forged(t, o, "{}")
		r.Header.Set("X-EBAY-SIGNATURE", header)
		proof, err := v.Verify(r)
		checkReason(t, proof, err, reason)
	}
	o.ForgeKeyID = "kid-2"
	checkFetchError(t, v, forged(t, o, "{}"))
	o.Secrets = []string{"wrong"}
	v, _ = signing.New(o)
	checkFetchError(t, v, forged(t, o, "{}"))
}

// A provider that never answers costs two seconds, once a minute.
func TestFetchTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int64
		f := signing.NewFetcher(signing.FetcherConfig{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			dials.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		start := time.Now()
		for range 2 {
			if _, err := f.Fetch(get("https://example.com/", time.Hour)); err == nil || errors.Is(err, io.EOF) {
				t.Errorf("Fetch = %v, want an error", err)
			}
		}
		if took := time.Since(start); took != 2*time.Second || dials.Load() != 1 {
			t.Errorf("%s and %d connections, want 2s and one", took, dials.Load())
		}
	})
}
