package ingress_test

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// proofHeaders are where each scheme's signature or credential stands.
var proofHeaders = map[string]string{
	"github": "x-hub-signature-256", "hmac": "x-hub-signature-256",
	"standard-webhooks": "webhook-signature", "gitlab": "webhook-signature", "svix": "svix-signature",
	"stripe": "stripe-signature", "slack": "x-slack-signature", "shopify": "x-shopify-hmac-sha256",
	"twilio": "x-twilio-signature", "gitlab-token": "x-gitlab-token", "token": "x-api-key", "basic": "authorization",
}

// bodyless schemes show a credential: the body is not covered.
var bodyless = []string{"gitlab-token", "token", "basic"}

// stamped schemes sign a timestamp.
var stamped = []string{"standard-webhooks", "gitlab", "svix", "stripe", "slack"}

// mutation is one way to change an accepted request.
type mutation struct {
	name   string
	status int
	change func(tc *fixedCase)
}

// editProof rewrites every line of the proof's header.
func editProof(edit func(value string) []string) func(*fixedCase) {
	return func(tc *fixedCase) {
		var out [][2]string
		for _, h := range tc.Request.Headers {
			if !strings.EqualFold(h[0], proofHeaders[tc.Preset]) {
				out = append(out, h)
				continue
			}
			for _, v := range edit(h[1]) {
				out = append(out, [2]string{h[0], v})
			}
		}
		tc.Request.Headers = out
	}
}

func keep(v ...string) []string { return v }

// otherText is v with its last letter or digit replaced.
func otherText(v string) string {
	i := strings.LastIndexFunc(v, func(r rune) bool { return r != '=' })
	c := byte('0')
	if v[i] == c {
		c = '1'
	}
	// Not the last character of base64, whose low bits may not count.
	i = max(i-2, 0)
	if v[i] == c {
		c = '7'
	}
	return v[:i] + string(c) + v[i+1:]
}

func mutations(preset string) []mutation {
	all := []mutation{
		{"as it was signed", 200, func(*fixedCase) {}},
		{"header repeated with the same value", 200, editProof(func(v string) []string { return keep(v, v) })},
		{"header in capitals", 200, func(tc *fixedCase) {
			for i := range tc.Request.Headers {
				tc.Request.Headers[i][0] = strings.ToUpper(tc.Request.Headers[i][0])
			}
		}},
		{"second secret of two", 200, func(tc *fixedCase) {
			tc.Source.Secrets = append([]string{otherSecret(tc.Source.Secrets[0])}, tc.Source.Secrets...)
		}},
		{"forwarded by nobody we know", 200, func(tc *fixedCase) {
			tc.Request.Headers = append(tc.Request.Headers, [2]string{"X-Forwarded-Host", "evil.example"}, [2]string{"X-Forwarded-Proto", "http"}, [2]string{"Forwarded", "host=evil.example"})
		}},
		{"no proof", 401, editProof(func(string) []string { return nil })},
		{"empty proof", 401, editProof(func(string) []string { return keep("") })},
		{"another proof", 401, editProof(func(v string) []string { return keep(otherText(v)) })},
		{"shortened proof", 401, editProof(func(v string) []string { return keep(v[:len(v)-5]) })},
		{"two different proofs", 401, editProof(func(v string) []string { return keep(v, otherText(v)) })},
		{"two different proofs, the good one last", 401, editProof(func(v string) []string { return keep(otherText(v), v) })},
		{"garbage", 401, editProof(func(string) []string { return keep("\xff\xfe,,==") })},
		{"another secret", 401, func(tc *fixedCase) { tc.Source.Secrets = []string{otherSecret(tc.Source.Secrets[0])} }},
	}
	if !slices.Contains(bodyless, preset) {
		all = append(all,
			mutation{"a space more", 401, func(tc *fixedCase) { tc.Request.Body = append(slices.Clone(tc.Request.Body), ' ') }},
			mutation{"one bit of the body", 401, func(tc *fixedCase) {
				tc.Request.Body = slices.Clone(tc.Request.Body)
				tc.Request.Body[len(tc.Request.Body)/2] ^= 1
			}},
			mutation{"no body", 401, func(tc *fixedCase) { tc.Request.Body = nil }},
			mutation{"decoded and encoded again", 401, func(tc *fixedCase) {
				tc.Request.Body = bytes.ReplaceAll(tc.Request.Body, []byte("é"), []byte(`\u00e9`))
				tc.Request.Body = append(tc.Request.Body, '\n')
			}},
		)
	}
	if slices.Contains(stamped, preset) {
		shift := func(seconds int64) func(*fixedCase) { return func(tc *fixedCase) { tc.Now += seconds } }
		all = append(all, mutation{"301 s late", 401, shift(301)}, mutation{"301 s early", 401, shift(-301)},
			mutation{"300 s late", 200, shift(300)}, mutation{"300 s early", 200, shift(-300)})
	}
	return all
}

// otherSecret is a secret of the same form.
func otherSecret(s string) string {
	if user, _, ok := strings.Cut(s, ":"); ok {
		return user + ":other"
	}
	return otherText(s)
}

// TestWhatIsNotProvenIsNeverQueued changes requests of a foreign signer on
// their way to the handler.
func TestWhatIsNotProvenIsNeverQueued(t *testing.T) {
	t.Parallel()
	for _, tc := range fixedCases(t) {
		if tc.Class != "positive" || proofHeaders[tc.Preset] == "" {
			continue
		}
		offset := stampOffset(&tc)
		for _, m := range mutations(tc.Preset) {
			changed := tc
			changed.Request.Headers = slices.Clone(tc.Request.Headers)
			changed.Now += offset
			m.change(&changed)
			t.Run(tc.Preset+"/"+m.name, func(t *testing.T) {
				t.Parallel()
				changed.judge(t, m.status)
			})
		}
	}
}

// stampOffset moves the clock onto the signed timestamp of a case, so that the
// window can be tried at its bounds.
func stampOffset(tc *fixedCase) int64 {
	for _, h := range tc.Request.Headers {
		name := strings.ToLower(h[0])
		value := h[1]
		if name == "stripe-signature" {
			value = strings.TrimPrefix(strings.Split(value, ",")[0], "t=")
		} else if !strings.HasSuffix(name, "timestamp") {
			continue
		}
		var at int64
		for _, d := range value {
			at = at*10 + int64(d-'0')
		}
		return at - tc.Now
	}
	return 0
}

func (tc *fixedCase) judge(t *testing.T, want int) {
	t.Helper()
	c := sources(tc.Source.source("hook"))
	c.Now = func() time.Time { return time.Unix(tc.Now, 0) }
	w := serve(t, c)
	res := w.raw(t, 1, tc.wire())[0]
	if res.StatusCode != want {
		t.Errorf("status = %d, want %d; log:\n%s", res.StatusCode, want, w.logs)
	}
	checkPlain(t, "answer", res)
	if n := len(w.queen.Items()); n != 0 != (want == http.StatusOK) {
		t.Errorf("%d items stored after status %d", n, res.StatusCode)
	}
}
