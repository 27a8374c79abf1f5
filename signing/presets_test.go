package signing_test

import (
	"bufio"
	"cmp"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/signing"
)

// contract is a row of testdata/presets.tsv, the published tables of presets.
type contract struct {
	name, status, url, id, kind, split, answer, handshakes, limit, horizon string
}

func contracts(t *testing.T) []contract {
	t.Helper()
	f, err := os.Open("testdata/presets.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	var all []contract
	for lines := bufio.NewScanner(f); lines.Scan(); {
		c := strings.Split(lines.Text(), "\t")
		if strings.HasPrefix(c[0], "#") {
			continue
		}
		if len(c) != 10 {
			t.Fatalf("presets.tsv: %d columns in %q", len(c), lines.Text())
		}
		all = append(all, contract{c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9]})
	}
	return all
}

// inWords are the rows whose table says in words what an expression says here.
var inWords = map[string]string{
	"see Meta items":                        "i:@id",
	"the update's key other than update_id": "b:@other.update_id",
}

// TestContract holds the table to the published one: every name in its order,
// its mark, ids, types, splits, answers, handshakes, caps and horizons.
func TestContract(t *testing.T) {
	t.Parallel()
	all, presets := contracts(t), signing.Presets()
	if len(all) != 114 || len(presets) != len(all)+8 {
		t.Fatalf("%d presets, %d published, want 114 of each and 8 generic verifiers", len(presets)-8, len(all))
	}
	for i, c := range all {
		p := presets[i]
		id, kind := cmp.Or(inWords[c.id], c.id), cmp.Or(inWords[c.kind], c.kind)
		if p.Name == "meta" {
			kind = "i:@type"
		}
		for what, pair := range map[string][2]string{
			"name": {p.Name, c.name}, "public_url": {mark(p.NeedsURL, "url"), c.url}, "unverified": {mark(p.Unverified, "unverified"), mark(c.status == "unverified", "unverified")},
			"transaction id": {p.TransactionID, id}, "event type": {p.EventType, kind}, "split": {p.Split, c.split},
			"answer": {answerText(p.Answer), answerText(parseAnswer(t, c.answer))}, "handshakes": {strings.Join(p.Handshakes, ", "), c.handshakes},
			"cap": {strconv.FormatInt(p.MaxBody>>20, 10) + " MiB", cmp.Or(c.limit, "10 MiB")}, "horizon": {p.Horizon.String(), horizonOf(t, c.horizon).String()},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s: %s = %q, want %q", c.name, what, pair[0], pair[1])
			}
		}
		if p.Generic {
			t.Errorf("%s is generic", p.Name)
		}
	}
	var generics []string
	for _, p := range presets[len(all):] {
		generics = append(generics, p.Name)
		if !p.Generic || p.TransactionID != "" || p.EventType != "" || p.Split != "" {
			t.Errorf("%s: %+v, want a generic verifier without expressions", p.Name, p)
		}
	}
	if got := strings.Join(generics, " "); got != "hmac public-key token basic jwt rfc9421 mtls none" {
		t.Errorf("generic verifiers = %s", got)
	}
}

func mark(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

func answerText(a signing.Answer) string {
	if a.Status == 0 {
		a.Status = http.StatusOK
	}
	return strings.TrimSpace(strconv.Itoa(a.Status) + " " + a.Body + " " + a.ContentType)
}

// parseAnswer reads "200 [accepted] text/plain", "204 application/json", "202".
func parseAnswer(t *testing.T, text string) (a signing.Answer) {
	t.Helper()
	words := strings.Fields(text)
	if len(words) == 0 {
		return a
	}
	a.Status, _ = strconv.Atoi(words[0])
	for _, word := range words[1:] {
		if strings.Contains(word, "/") && !strings.HasPrefix(word, "<") {
			a.ContentType = word
		} else {
			a.Body = word
		}
	}
	return a
}

func horizonOf(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDocs: every scheme says what to paste where.
func TestDocs(t *testing.T) {
	t.Parallel()
	for _, p := range signing.Presets() {
		if len(p.Docs) < 20 || len(p.Docs) > 400 || !strings.HasSuffix(p.Docs, ".") {
			t.Errorf("%s: Docs = %q, want a line or two", p.Name, p.Docs)
		}
	}
}

func TestWhatAProviderSaysOfItsAttempts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		scheme, header, value string
		want                  int
	}{
		{"slack", "X-Slack-Retry-Num", "3", 3}, {"slack", "X-Slack-Retry-Num", "", 0}, {"slack", "X-Slack-Retry-Num", "-1", 0},
		{"bitbucket", "X-Attempt-Number", "1", 0}, {"bitbucket", "X-Attempt-Number", "2", 1}, {"bitbucket", "X-Attempt-Number", "0", 0},
		{"jira", "X-Atlassian-Webhook-Retry", "1", 1}, {"square", "Square-Retry-Number", "11", 11}, {"twitch", "Twitch-Eventsub-Message-Retry", "0", 0},
		{"azure-event-grid", "Aeg-Delivery-Count", "99999999999999999999", 9999}, {"github", "X-Attempt-Number", "5", 0},
	} {
		preset, _ := signing.Lookup(tt.scheme)
		if got := preset.Resends(http.Header{tt.header: {tt.value}}); got != tt.want {
			t.Errorf("%s, %s %q: Resends = %d, want %d", tt.scheme, tt.header, tt.value, got, tt.want)
		}
	}
	slack, _ := signing.Lookup("slack")
	if got := slack.Resends(http.Header{"X-Slack-Retry-Num": {"1", "2"}}); got != 0 {
		t.Errorf("two values: Resends = %d, want 0", got)
	}
}
