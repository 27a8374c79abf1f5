package signing_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/signing"
)

const (
	rfcTime   = 1618884473
	rfcHMAC   = "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ=="
	rfcBody   = `{"hello": "world"}`
	rfcSHA256 = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"
	rfcSHA512 = "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:"
)

// rfcRequest is the request of RFC 9421, appendix B.2.
func rfcRequest(input, signature string) *signing.Request {
	return &signing.Request{
		Method: "POST", Path: "/in/x", RawQuery: "param=Value&Pet=dog", Body: []byte(rfcBody), Now: time.Unix(rfcTime, 0),
		Header: http.Header{
			"Date": {"Tue, 20 Apr 2021 02:07:55 GMT"}, "Content-Type": {"application/json"}, "Content-Length": {"18"}, "Content-Digest": {rfcSHA512},
			"Signature-Input": {input}, "Signature": {signature},
		},
	}
}

// TestMessageSignatureVectors: the examples of RFC 9421 with shared secrets
// and Ed25519.
func TestMessageSignatureVectors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, algorithm, secret, input, signature string
		components                                []any
	}{
		{
			"B.2.5", "hmac-sha256", rfcHMAC, `sig-b25=("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret"`,
			"sig-b25=:pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=:", []any{"date", "@authority", "content-type"},
		},
		{
			"B.2.6", "ed25519", "MCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=",
			`sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"`,
			"sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:", []any{"@method"},
		},
	} {
		o := signing.Options{Scheme: "rfc9421", Secrets: []string{tt.secret}, PublicURL: "https://example.com/foo", SchemeOptions: opts("algorithm", tt.algorithm, "components", tt.components)}
		v, problems := signing.New(o)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		proof, err := v.Verify(rfcRequest(tt.input, tt.signature))
		if checkReason(t, proof, err, ""); proof.Class != signing.Authenticated {
			t.Errorf("%s: class %s, want authenticated: the body is not covered", tt.name, proof.Class)
		}
		for what, change := range map[string]func(*signing.Request){
			"content type": func(r *signing.Request) { r.Header.Set("Content-Type", "text/plain") },
			"two dates":    func(r *signing.Request) { r.Header.Add("Date", "x") },
			"no date":      func(r *signing.Request) { r.Header.Del("Date") },
			"301 s later":  func(r *signing.Request) { r.Now = r.Now.Add(301 * time.Second) },
			"301 s before": func(r *signing.Request) { r.Now = r.Now.Add(-301 * time.Second) },
			"other label":  func(r *signing.Request) { r.Header.Set("Signature", "x"+r.Header.Get("Signature")) },
		} {
			r := rfcRequest(tt.input, tt.signature)
			change(r)
			if proof, err := v.Verify(r); err == nil {
				t.Errorf("%s, %s: Verify = %+v, want a rejection", tt.name, what, proof)
			}
		}
		// What the default asks for is not covered here.
		delete(o.SchemeOptions, "components")
		v, _ = signing.New(o)
		proof, err = v.Verify(rfcRequest(tt.input, tt.signature))
		checkReason(t, proof, err, signing.ReasonMissingPart)
	}
}

// signBase signs a base written by hand with the secret of B.2.5.
func signBase(base string) string {
	key, _ := base64.StdEncoding.DecodeString(rfcHMAC)
	return base64.StdEncoding.EncodeToString(hs256(string(key))([]byte(base)))
}

// TestMessageSignatureBase writes bases by hand: every component, and what
// must be refused however well it is signed.
func TestMessageSignatureBase(t *testing.T) {
	t.Parallel()
	const created = ";created=1618884473"
	method, target, digest := `"@method": POST`, `"@target-uri": https://Example.com:443/foo?param=Value&Pet=dog`, `"content-digest": `+rfcSHA512
	params := func(list string) string { return `"@signature-params": ` + list }
	tests := []struct {
		name, list string
		lines      []string
		change     func(*signing.Request)
		reason     signing.Reason
	}{
		{name: "default", list: `("@method" "@target-uri" "content-digest")` + created, lines: []string{method, target, digest}},
		{name: "path and authority", list: `("@method" "@path" "@authority" "content-digest")` + created, lines: []string{method, `"@path": /foo`, `"@authority": example.com`, digest}},
		{name: "everything", list: `("@method" "@target-uri" "@scheme" "@query" "@request-target" "@query-param";name="Pet" "date" "content-digest")` + created + `;alg="hmac-sha256";nonce="n";tag="t"`,
			lines: []string{method, target, `"@scheme": https`, `"@query": ?param=Value&Pet=dog`, `"@request-target": /foo?param=Value&Pet=dog`, `"@query-param";name="Pet": dog`, `"date": Tue, 20 Apr 2021 02:07:55 GMT`, digest}},
		{name: "two values of a header", list: `("@method" "@target-uri" "content-digest" "cache-control")` + created, lines: []string{method, target, digest, `"cache-control": max-age=60, must-revalidate`},
			change: func(r *signing.Request) { r.Header["Cache-Control"] = []string{"max-age=60", "    must-revalidate  "} }},
		{name: "odd query parameter", list: `("@method" "@target-uri" "content-digest" "@query-param";name="fa%C3%A7ade%22%3A%20")` + created,
			lines:  []string{method, `"@target-uri": https://Example.com:443/foo?fa%C3%A7ade%22%3A+=a+b%0a`, digest, `"@query-param";name="fa%C3%A7ade%22%3A%20": a%20b%0A`},
			change: func(r *signing.Request) { r.RawQuery = "fa%C3%A7ade%22%3A+=a+b%0a" }},
		{name: "no query", list: `("@method" "@target-uri" "content-digest" "@query")` + created, lines: []string{method, `"@target-uri": https://Example.com:443/foo`, digest, `"@query": ?`}, change: func(r *signing.Request) { r.RawQuery = "" }},
		{name: "expires now", list: `("@method" "@target-uri" "content-digest")` + created + `;expires=1618884473`, lines: []string{method, target, digest}},

		{name: "expired", list: `("@method" "@target-uri" "content-digest")` + created + `;expires=1618884472`, lines: []string{method, target, digest}, reason: late},
		{name: "expires is text", list: `("@method" "@target-uri" "content-digest")` + created + `;expires="1"`, lines: []string{method, target, digest}, reason: malTime},
		{name: "no created", list: `("@method" "@target-uri" "content-digest");expires=1618884999`, lines: []string{method, target, digest}, reason: noTime},
		{name: "created is text", list: `("@method" "@target-uri" "content-digest");created="1618884473"`, lines: []string{method, target, digest}, reason: noTime},
		{name: "old", list: `("@method" "@target-uri" "content-digest");created=1618884172`, lines: []string{method, target, digest}, reason: late},
		{name: "ahead", list: `("@method" "@target-uri" "content-digest");created=1618884774`, lines: []string{method, target, digest}, reason: late},
		{name: "another alg", list: `("@method" "@target-uri" "content-digest")` + created + `;alg="ed25519"`, lines: []string{method, target, digest}, reason: signing.ReasonUnsupported},
		{name: "no method", list: `("@target-uri" "content-digest")` + created, lines: []string{target, digest}, reason: signing.ReasonMissingPart},
		{name: "no digest", list: `("@method" "@target-uri")` + created, lines: []string{method, target}, reason: signing.ReasonMissingPart},
		{name: "path alone", list: `("@method" "@path" "content-digest")` + created, lines: []string{method, `"@path": /foo`, digest}, reason: signing.ReasonMissingPart},
		{name: "a component twice", list: `("@method" "@target-uri" "content-digest" "@method")` + created, lines: []string{method, target, digest, method}, reason: malSig},
		{name: "a component that is a token", list: `("@method" "@target-uri" "content-digest" date)` + created, lines: []string{method, target, digest}, reason: malSig},
		{name: "a header that is absent", list: `("@method" "@target-uri" "content-digest" "x-absent")` + created, lines: []string{method, target, digest, `"x-absent": `}, reason: signing.ReasonMissingPart},
		{name: "an unknown component", list: `("@method" "@target-uri" "content-digest" "@status")` + created, lines: []string{method, target, digest, `"@status": 200`}, reason: signing.ReasonUnsupported},
		{name: "parameters of a header", list: `("@method" "@target-uri" "content-digest" "date";sf)` + created, lines: []string{method, target, digest, `"date";sf: x`}, reason: signing.ReasonUnsupported},
		{name: "of a request", list: `("@method";req "@method" "@target-uri" "content-digest")` + created, lines: []string{`"@method";req: POST`, method, target, digest}, reason: signing.ReasonUnsupported},
		{name: "upper case", list: `("@method" "@target-uri" "content-digest" "Date")` + created, lines: []string{method, target, digest, `"Date": Tue, 20 Apr 2021 02:07:55 GMT`}, reason: malSig},
		{name: "a parameter twice in the query", list: `("@method" "@target-uri" "content-digest" "@query-param";name="a")` + created, lines: []string{method, `"@target-uri": https://Example.com:443/foo?a=1&a=1`, digest, `"@query-param";name="a": 1`},
			change: func(r *signing.Request) { r.RawQuery = "a=1&a=1" }, reason: signing.ReasonMissingPart},
		{name: "another body", list: `("@method" "@target-uri" "content-digest")` + created, lines: []string{method, target, digest}, change: func(r *signing.Request) { r.Body = []byte(rfcBody + " ") }, reason: badSig},
		{name: "another method", list: `("@method" "@target-uri" "content-digest")` + created, lines: []string{method, target, digest}, change: func(r *signing.Request) { r.Method = "PUT" }, reason: badSig},
		{name: "another query", list: `("@method" "@target-uri" "content-digest")` + created, lines: []string{method, target, digest}, change: func(r *signing.Request) { r.RawQuery += "&x" }, reason: badSig},
		{name: "two digests", list: `("@method" "@target-uri" "content-digest")` + created, lines: []string{method, target, `"content-digest": ` + rfcSHA256 + ", " + rfcSHA512}, change: func(r *signing.Request) { r.Header.Set("Content-Digest", rfcSHA256+", "+rfcSHA512) }},
		{name: "one of two digests wrong", list: `("@method" "@target-uri" "content-digest")` + created, lines: []string{method, target, `"content-digest": sha-256=:AAAA:, ` + rfcSHA512}, change: func(r *signing.Request) { r.Header.Set("Content-Digest", "sha-256=:AAAA:, "+rfcSHA512) }, reason: badSig},
		{name: "md5", list: `("@method" "@target-uri" "content-digest")` + created, lines: []string{method, target, `"content-digest": md5=:AAAA:`}, change: func(r *signing.Request) { r.Header.Set("Content-Digest", "md5=:AAAA:") }, reason: signing.ReasonUnsupported},
		{name: "digest that is none", list: `("@method" "@target-uri" "content-digest")` + created, lines: []string{method, target, `"content-digest": x y`}, change: func(r *signing.Request) { r.Header.Set("Content-Digest", "x y") }, reason: malSig},
	}
	v, problems := signing.New(signing.Options{Scheme: "rfc9421", Secrets: []string{secretA[6:], rfcHMAC}, PublicURL: "https://Example.com:443/foo", SchemeOptions: opts("algorithm", "hmac-sha256")})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, tt := range tests {
		r := rfcRequest("sig1="+tt.list, "sig1=:"+signBase(strings.Join(append(tt.lines, params(tt.list)), "\n"))+":")
		if tt.change != nil {
			tt.change(r)
		}
		proof, err := v.Verify(r)
		if checkReason(t, proof, err, tt.reason); t.Failed() {
			t.Fatal(tt.name)
		}
		if err == nil && (proof.Secret != 1 || proof.Class != signing.Verified) {
			t.Errorf("%s: Verify = %+v, want the second secret and class verified", tt.name, proof)
		}
	}
}

// TestMessageSignatureFields: labels, and dictionaries that are none.
func TestMessageSignatureFields(t *testing.T) {
	t.Parallel()
	const list = `("@method" "@target-uri" "content-digest");created=1618884473`
	good := signBase("\"@method\": POST\n\"@target-uri\": https://example.com/foo?param=Value&Pet=dog\n\"content-digest\": " + rfcSHA512 + "\n\"@signature-params\": " + list)
	o := signing.Options{Scheme: "rfc9421", Secrets: []string{rfcHMAC}, PublicURL: "https://example.com/foo", SchemeOptions: opts("algorithm", "hmac-sha256")}
	labelled := o
	labelled.SchemeOptions = opts("algorithm", "hmac-sha256", "label", "b")
	wrong := base64.StdEncoding.EncodeToString(make([]byte, 32))
	many := func(n int) (string, string) {
		var inputs, signatures []string
		for i := range n {
			label := "l" + strings.Repeat("x", i)
			inputs, signatures = append(inputs, label+"="+list), append(signatures, label+"=:"+good+":")
		}
		return strings.Join(inputs, ", "), strings.Join(signatures, ", ")
	}
	input16, sig16 := many(16)
	input17, sig17 := many(17)
	for _, tt := range []struct {
		options          signing.Options
		input, signature string
		want             bool
	}{
		{o, "a=" + list, "a=:" + good + ":", true},
		{o, "a=" + list + ", b=" + list, "b=:" + good + ":", true},
		{o, "a=" + list + ",b=" + list, "a=:" + wrong + ":,b=:" + good + ":", true},
		{labelled, "a=" + list + ", b=" + list, "a=:" + good + ":, b=:" + good + ":", true},
		{labelled, "a=" + list + ", b=" + list, "a=:" + good + ":, b=:" + wrong + ":", false},
		{labelled, "a=" + list, "a=:" + good + ":", false},
		{o, "a=" + list, "b=:" + good + ":", false},
		{o, "a=" + list + ", a=" + list, "a=:" + good + ":", false},
		{o, "a=" + list, "a=:" + wrong + ":, a=:" + good + ":", false},
		{o, input16, sig16, true}, {o, input17, sig17, false},
		{o, "", "a=:" + good + ":", false}, {o, "a=" + list, "", false}, {o, "a=1", "a=:" + good + ":", false}, {o, "a=" + list, `a="` + good + `"`, false},
		{o, "a=" + list + ",", "a=:" + good + ":", false}, {o, "a=(", "a=:" + good + ":", false}, {o, "A=" + list, "A=:" + good + ":", false}, {o, "a=" + list, "a=:" + strings.TrimRight(good, "=") + ":", false},
	} {
		v, problems := signing.New(tt.options)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if proof, err := v.Verify(rfcRequest(tt.input, tt.signature)); (err == nil) != tt.want {
			t.Errorf("Verify(%.60s; %.60s) = %+v, %v, want ok %t", tt.input, tt.signature, proof, err, tt.want)
		}
	}
	v, _ := signing.New(o)
	r := rfcRequest("a="+list, "a=:"+good+":")
	r.Header["Signature"] = append(r.Header["Signature"], r.Header["Signature"][0])
	proof, err := v.Verify(r)
	checkReason(t, proof, err, "")
	r.Header["Signature"][1] = "a=:" + wrong + ":"
	proof, err = v.Verify(r)
	checkReason(t, proof, err, dup)
}

// TestMessageSignatureAlgorithms: each algorithm accepts a signature made with
// crypto/… alone, and no other one's.
func TestMessageSignatureAlgorithms(t *testing.T) {
	t.Parallel()
	k := keysOnce()
	const list = `("@method" "@target-uri" "content-digest");created=1618884473;keyid="k"`
	base := []byte("\"@method\": POST\n\"@target-uri\": https://example.com/foo?param=Value&Pet=dog\n\"content-digest\": " + rfcSHA512 + "\n\"@signature-params\": " + list)
	sum256, sum512 := sha256.Sum256(base), sha512.Sum512(base)
	pss, err := rsa.SignPSS(rand.Reader, k.rsa[0], crypto.SHA512, sum512[:], &rsa.PSSOptions{SaltLength: 64})
	if err != nil {
		t.Fatal(err)
	}
	short, _ := rsa.SignPSS(rand.Reader, k.rsa[0], crypto.SHA512, sum512[:], &rsa.PSSOptions{SaltLength: 20})
	v15, _ := rsa.SignPKCS1v15(nil, k.rsa[0], crypto.SHA256, sum256[:])
	der, _ := ecdsa.SignASN1(rand.Reader, k.ec[0], sum256[:])
	for _, tt := range []struct {
		algorithm string
		key       crypto.PublicKey
		good      []byte
		bad       [][]byte
	}{
		{"ed25519", k.ed[0].Public(), ed25519.Sign(k.ed[0], base), [][]byte{ed25519.Sign(k.ed[1], base), make([]byte, 64)}},
		{"ecdsa-p256-sha256", k.ec[0].Public(), es256(k.ec[0])(base), [][]byte{der, es256(k.ec[1])(base), make([]byte, 64)}},
		{"rsa-pss-sha512", k.rsa[0].Public(), pss, [][]byte{v15, short, make([]byte, 256)}},
		{"rsa-v1_5-sha256", k.rsa[0].Public(), v15, [][]byte{pss, make([]byte, 256)}},
	} {
		o := signing.Options{Scheme: "rfc9421", Secrets: []string{pemOf(tt.key)}, PublicURL: "https://example.com/foo", SchemeOptions: opts("algorithm", tt.algorithm)}
		v, problems := signing.New(o)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		proof, err := v.Verify(rfcRequest("s="+list, "s=:"+base64.StdEncoding.EncodeToString(tt.good)+":"))
		checkReason(t, proof, err, "")
		for i, bad := range tt.bad {
			if proof, err := v.Verify(rfcRequest("s="+list, "s=:"+base64.StdEncoding.EncodeToString(bad)+":")); err == nil {
				t.Errorf("%s: Verify(bad signature %d) = %+v, want a rejection", tt.algorithm, i, proof)
			}
		}
		for prefix, private := range map[string]crypto.Signer{"ed": k.ed[0], "ec": k.ec[0], "rsa": k.rsa[0]} {
			fits := strings.HasPrefix(tt.algorithm, prefix)
			o.Secrets, o.ForgeKey = []string{pemOf(private.Public())}, private
			if _, problems := signing.New(o); (len(problems) == 0) != fits {
				t.Errorf("New(%s with a %T) = %v, want ok %t", tt.algorithm, private, problems, fits)
			}
			if fits {
				v, _ := signing.New(o)
				proof, err := v.Verify(forged(t, o, rfcBody))
				checkReason(t, proof, err, "")
			}
		}
	}
}
