package ingress_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/signing"
)

// proofNames are the headers that carry a scheme's proof, lower case.
func (tc *fixedCase) proofNames() []string {
	preset, _ := signing.Lookup(tc.Source.Scheme)
	o := tc.Source.source("hook").SigningOptions()
	var names []string
	for _, name := range slices.Concat(preset.KeepHeaders(o), preset.CredentialHeaders(o)) {
		names = append(names, strings.ToLower(name))
	}
	return names
}

// without is a copy of the case without some headers; false where it had none
// of them.
func (tc *fixedCase) without(names []string) (fixedCase, bool) {
	changed := *tc
	changed.Request.Headers = slices.DeleteFunc(slices.Clone(tc.Request.Headers), func(h [2]string) bool {
		return slices.Contains(names, strings.ToLower(h[0]))
	})
	return changed, len(changed.Request.Headers) < len(tc.Request.Headers)
}

func (tc *fixedCase) spelled(change func(string) string) fixedCase {
	changed := *tc
	changed.Request.Headers = slices.Clone(tc.Request.Headers)
	for i := range changed.Request.Headers {
		changed.Request.Headers[i][0] = change(changed.Request.Headers[i][0])
	}
	return changed
}

// sent sends a case and returns the answer with its body.
func (w *world) sent(t *testing.T, tc *fixedCase) (*http.Response, string) {
	t.Helper()
	res := w.raw(t, 1, tc.wire())[0]
	body, _ := io.ReadAll(res.Body)
	return res, string(body)
}

// TestEverySchemeKeepsThePromises: what holds for all of them, tried on each
// accepted request of the foreign signer.
func TestEverySchemeKeepsThePromises(t *testing.T) {
	t.Parallel()
	for _, tc := range fixedCases(t) {
		if tc.Expect.Status >= 300 {
			continue
		}
		t.Run(tc.Case, func(t *testing.T) {
			t.Parallel()
			c := sources(tc.Source.source("hook"))
			c.Now = func() time.Time { return time.Unix(tc.Now, 0) }
			w := serve(t, c)
			tc.checkRefusals(t, w)
			res, body := w.sent(t, &tc)
			stored := len(w.queen.Items())
			if res.StatusCode != tc.Expect.Status || stored != len(tc.Expect.Items) {
				t.Fatalf("status %d, %d events; want %d, %d", res.StatusCode, stored, tc.Expect.Status, len(tc.Expect.Items))
			}
			tc.checkResends(t, w, res, body)
		})
	}
}

// checkRefusals changes what must not be changed.
func (tc *fixedCase) checkRefusals(t *testing.T, w *world) {
	t.Helper()
	if changed, had := tc.without(tc.proofNames()); had && tc.Preset != "none" {
		if res, _ := w.sent(t, &changed); res.StatusCode < 400 || res.StatusCode >= 500 {
			t.Errorf("without its proof: status %d, want a refusal", res.StatusCode)
		}
	}
	for _, method := range []string{"PUT", "DELETE", "PATCH"} {
		changed := *tc
		changed.Request.Method = method
		if res, _ := w.sent(t, &changed); res.StatusCode != http.StatusMethodNotAllowed || !strings.HasPrefix(res.Header.Get("Allow"), "POST") {
			t.Errorf("%s: status %d, Allow %q; want 405", method, res.StatusCode, res.Header.Get("Allow"))
		}
	}
	if n := len(w.queen.Items()); n != 0 {
		t.Errorf("%d events of refused requests stored", n)
	}
}

// checkResends sends the request again, as retries and proxies change it: the
// answer is the same, and nothing new is stored.
func (tc *fixedCase) checkResends(t *testing.T, w *world, first *http.Response, body string) {
	t.Helper()
	forwarded := *tc
	forwarded.Request.Headers = append(slices.Clone(tc.Request.Headers), [2]string{"X-Forwarded-Host", "evil.example"},
		[2]string{"X-Forwarded-Proto", "http"}, [2]string{"Forwarded", "host=evil.example"}, [2]string{"X-Retry-Num", "3"})
	slashed := *tc
	slashed.Request.PathSuffix += "/"
	if strings.HasSuffix(tc.Request.PathSuffix, "/") {
		slashed = *tc
	}
	for name, again := range map[string]fixedCase{
		"same": *tc, "lower case": tc.spelled(strings.ToLower), "upper case": tc.spelled(strings.ToUpper), "forwarded": forwarded, "slash": slashed,
	} {
		res, text := w.sent(t, &again)
		if res.StatusCode != first.StatusCode || text != body || res.Header.Get("Content-Type") != first.Header.Get("Content-Type") {
			t.Errorf("%s: %d %q, want the first answer %d %q; log:\n%s", name, res.StatusCode, text, first.StatusCode, body, w.logs)
		}
		if len(tc.Expect.Items) > 0 && res.Header.Get("Queen-Duplicate") != "1" && !strings.Contains(tc.Expect.Items[0].TransactionID, ":uuid:") {
			t.Errorf("%s: not marked as a duplicate", name)
		}
	}
	if n := len(w.queen.Items()); n != len(tc.Expect.Items) {
		t.Errorf("%d events stored after the resends, want %d", n, len(tc.Expect.Items))
	}
}
