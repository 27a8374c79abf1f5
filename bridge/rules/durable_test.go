package rules_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/rules"
)

// store writes a row by hand, as another version or a restored backup would.
func (b *broker) store(t *testing.T, r bridge.Resource, value string) {
	t.Helper()
	results, err := b.Client.KV(t.Context(), []queen.KVOp{{Op: "put", Namespace: bridge.KVNamespace, Key: bridge.RuleKey(r), Value: json.RawMessage(value)}})
	if err != nil || !results[0].Applied {
		t.Fatalf("put: %+v, %v", results, err)
	}
}

// stored is the value of a row.
func (b *broker) stored(t *testing.T, r bridge.Resource) string {
	t.Helper()
	results, err := b.Client.KV(t.Context(), []queen.KVOp{{Op: "get", Namespace: bridge.KVNamespace, Key: bridge.RuleKey(r)}})
	if err != nil {
		t.Fatal(err)
	}
	return string(results[0].Value)
}

func rowOf(t *testing.T, r bridge.Resource, version, document, more string) string {
	t.Helper()
	doc, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return `{"queenbridge":` + version + `,"kind":"` + string(r.Kind) + `","name":"` + r.Name + `","document":` + string(doc) +
		`,"created":"2026-01-01T00:00:00Z","updated":"2026-01-01T00:00:00Z","by":"x","write":"w"` + more + `}`
}

// TestUnusableRowsBreakNothing: each of these is left out and reported, and the
// sound target beside it works.
func TestUnusableRowsBreakNothing(t *testing.T) {
	t.Parallel()
	bad := bridge.Resource{Kind: bridge.KindSource, Name: "bad"}
	tests := []struct{ name, row, want string }{
		{"newer schema", rowOf(t, bad, "2", `{}`, ""), "schema version 2, known is 1: a newer version"},
		{"newer row", rowOf(t, bad, "1", `{"name":"bad","scheme":"none"}`, `,"colour":"red"`), "a field that is unknown here: a newer version"},
		{"newer field", rowOf(t, bad, "1", `{"name":"bad","scheme":"none","colour":"red"}`, ""), "sources/bad.colour: is unknown"},
		{"removed preset", rowOf(t, bad, "1", `{"name":"bad","scheme":"fax"}`, ""), "sources/bad.scheme: "},
		{"reference that is not set", rowOf(t, bad, "1", `{"name":"bad","scheme":"github","secrets":["${env:RULES_TEST_UNSET}"]}`, ""), "environment variable RULES_TEST_UNSET is not set"},
		{"sealed by a lost key", rowOf(t, bad, "1", `{"name":"bad","scheme":"github","secrets":["${sealed:a}"]}`, `,"sealed":{"a":"v1.0123456789ab.AAAA"}`), "a key that this process does not have (id 0123456789ab)"},
		{"no JSON", rowOf(t, bad, "1", `{"name":`, ""), "sources/bad: read JSON"},
		{"foreign", `{"a":1}`, "stored row rule/sources/bad: the row is none of ours"},
		{"text", `"x"`, "stored row rule/sources/bad: the row is none of ours"},
		{"of another key", rowOf(t, target, "1", targetDoc, ""), "the row does not belong to its key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t)
			s := newStore(t, b, nil)
			put(t, s, target, targetDoc)
			b.store(t, bad, tt.row)
			fresh := newStore(t, b, nil)
			fresh.Sync(t.Context())
			if notes := strings.Join(fresh.Notes(), "\n"); !strings.Contains(notes, tt.want) {
				t.Errorf("notes = %q, want %q", notes, tt.want)
			}
			if c := fresh.Catalog().Config; len(c.Targets) != 1 || len(c.Sources) != 0 {
				t.Errorf("in use: %d targets, %d sources, want 1, 0", len(c.Targets), len(c.Sources))
			}
			put(t, fresh, source, `{"scheme":"none"}`) // others can be written
		})
	}
}

func TestWhatANewerVersionStoredIsNotOverwritten(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]string{
		"schema": rowOf(t, target, "2", `{"whatever":1}`, ""),
		"row":    rowOf(t, target, "1", targetDoc, `,"colour":"red"`),
		"field":  rowOf(t, target, "1", `{"name":"ci","http":{"url":"http://x.example.com","http3":true}}`, ""),
	} {
		b := newBroker(t)
		b.store(t, target, row)
		before := b.stored(t, target)
		s := newStore(t, b, nil)
		s.Sync(t.Context())
		for _, w := range []rules.Write{
			{Resource: target, Document: parse(t, targetDoc)},
			{Resource: target, Document: parse(t, `{"paused":true}`), Patch: true},
		} {
			if err := writeErr(t, s, w); !is[*rules.NewerError](err) {
				t.Errorf("%s: Write = %v", name, err)
			}
		}
		if after := b.stored(t, target); after != before {
			t.Errorf("%s: the row was changed: %s, was %s", name, after, before)
		}
		if out, err := s.Delete(t.Context(), rules.Delete{Resource: target}); err != nil || !out.Gone {
			t.Errorf("%s: Delete = %+v, %v, want it to be possible", name, out, err)
		}
	}
}

func TestABrokenRowCanBeMended(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.store(t, source, rowOf(t, source, "1", `{"name":"github","scheme":"fax"}`, ""))
	s := newStore(t, b, nil)
	put(t, s, source, `{"scheme":"none"}`)
	if len(s.Notes()) > 0 || len(s.Catalog().Config.Sources) != 1 {
		t.Errorf("notes = %q", s.Notes())
	}
}

// TestAHandInTheKVIsSeenByTheNextLook: rows that come, change and go without
// the generation, as a restored backup brings them.
func TestAHandInTheKVIsSeenByTheNextLook(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	s := newStore(t, b, func(c *rules.Config) { c.Poll = 20 * time.Millisecond })
	put(t, s, target, targetDoc)
	running(t, s)
	b.store(t, source, rowOf(t, source, "1", `{"name":"github","scheme":"fax"}`, ""))
	eventually(t, s, 10*time.Second, "the broken source", func(c *rules.Catalog) bool { return len(c.Invalid()) == 1 })
	b.store(t, source, rowOf(t, source, "1", `{"name":"github","scheme":"none"}`, ""))
	eventually(t, s, 10*time.Second, "the mended source", func(c *rules.Catalog) bool { return len(c.Config.Sources) == 1 })
	if _, err := b.Client.KV(t.Context(), []queen.KVOp{{Op: "delete", Namespace: bridge.KVNamespace, Key: bridge.RuleKey(source)}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, s, 10*time.Second, "no source", func(c *rules.Catalog) bool { return len(c.Config.Sources) == 0 && len(c.Config.Targets) == 1 })
}

func TestLastGoodRulesStayWhileQueenIsAway(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	s := newStore(t, b, func(c *rules.Config) { c.Poll = time.Millisecond })
	put(t, s, target, targetDoc)
	looks := make(chan struct{}, 1)
	b.refused = func() {
		select {
		case looks <- struct{}{}:
		default:
		}
	}
	b.away.Store(true)
	running(t, s)
	<-looks
	<-looks
	if len(s.Catalog().Config.Targets) != 1 {
		t.Error("the target is gone")
	}
	s.SetFile(fileOf(t, `{"targets":[{"name":"file","http":{"url":"http://file.example.com"}}]}`))
	if len(s.Catalog().Config.Targets) != 2 {
		t.Error("the file does not count while queen is away")
	}
	if err := writeErr(t, s, rules.Write{Resource: source, Document: parse(t, `{"scheme":"none"}`)}); !errors.Is(err, errAway) {
		t.Errorf("Write = %v", err)
	}
}

func TestColdStartWithoutQueen(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	put(t, newStore(t, b, nil), target, targetDoc)
	b.away.Store(true)
	s := newStore(t, b, func(c *rules.Config) {
		c.Poll = 5 * time.Millisecond
		c.File = fileOf(t, `{"targets":[{"name":"file","http":{"url":"http://file.example.com"}}]}`)
	})
	s.Sync(t.Context())
	running(t, s)
	if c := s.Catalog(); len(c.Config.Targets) != 1 || !c.Synced.IsZero() {
		t.Errorf("%d targets, synced %s, want the file's alone", len(c.Config.Targets), c.Synced)
	}
	b.away.Store(false)
	eventually(t, s, 10*time.Second, "the stored target, too", func(c *rules.Catalog) bool { return len(c.Config.Targets) == 2 && !c.Synced.IsZero() })
}

func TestReferencesAreStoredAsWrittenAndResolvedAnewByAReload(t *testing.T) {
	t.Setenv("RULES_TEST_SECRET", "first-secret")
	b := newBroker(t)
	s := newStore(t, b, func(c *rules.Config) { c.Keys = rules.Keyring{} })
	out := put(t, s, source, `{"scheme":"github","secrets":["${env:RULES_TEST_SECRET}"]}`)
	if !strings.Contains(document(out.Entry), "${env:RULES_TEST_SECRET}") || strings.Contains(b.stored(t, source), "first-secret") {
		t.Errorf("document = %s, stored = %s", document(out.Entry), b.stored(t, source))
	}
	secret := func() string { return s.Catalog().Config.Sources[0].Secrets[0].Reveal() }
	if secret() != "first-secret" {
		t.Errorf("secret = %q", secret())
	}
	t.Setenv("RULES_TEST_SECRET", "second-secret")
	s.SetFile(fileOf(t, `{}`))
	if secret() != "second-secret" {
		t.Errorf("secret after a reload = %q", secret())
	}
}

func TestProblemsDoNotShowWhatReferencesStandFor(t *testing.T) {
	t.Setenv("RULES_TEST_SCHEME", "swordfish")
	s := newStore(t, newBroker(t), nil)
	for _, doc := range []string{
		`{"scheme":"${env:RULES_TEST_SCHEME}"}`, `{"scheme":"none","queue":"queenbridge-retry.${env:RULES_TEST_SCHEME}"}`,
		`{"scheme":"none","on_invalid":"${env:RULES_TEST_SCHEME}"}`, `{"scheme":"none","lanes":"${env:RULES_TEST_SCHEME}"}`,
		`{"scheme":"hmac","secrets":["swordfish"],"scheme_options":{"access_token":"swordfish"}}`,
	} {
		if err := writeErr(t, s, rules.Write{Resource: source, Document: parse(t, doc)}); strings.Contains(err.Error(), "swordfish") {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

func TestTheBridgesOwnCredentialsCannotBeReferredTo(t *testing.T) {
	t.Parallel()
	s := newStore(t, newBroker(t), nil)
	for _, name := range []string{"QUEENBRIDGE_ENCRYPTION_KEY", "QUEENBRIDGE_ADMIN_TOKEN", "QUEENBRIDGE_QUEEN_TOKEN"} {
		doc := `{"http":{"url":"http://evil.example.com","headers":{"X-A":"a ${env:` + name + `}"}}}`
		if err := writeErr(t, s, rules.Write{Resource: target, Document: parse(t, doc)}); !strings.Contains(err.Error(), "it is the bridge's own") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, file := range []string{"/proc/self/environ", "//proc/1/environ", "/dev/fd/../environ", "../../proc/self/environ", "/x/../proc/self/environ", "/sys/a"} {
		doc := `{"http":{"url":"http://evil.example.com"},"auth":{"type":"basic","username":"u","password":"${file:` + file + `}"}}`
		if err := writeErr(t, s, rules.Write{Resource: target, Document: parse(t, doc)}); !strings.Contains(err.Error(), "may not refer to a file of /proc") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestSealedSecrets(t *testing.T) {
	t.Parallel()
	const literal = "literal-secret-4711"
	b := newBroker(t)
	s := newStore(t, b, nil)
	doc := `{"http":{"url":"http://x.example.com","headers":{"Authorization":"` + literal + `"}},"auth":{"type":"bearer","token":"` + literal + `"},"signing":{"secrets":["` + literal + `"]}}`
	// A Standard Webhooks secret has a form of its own: the literal is refused
	// there, and not shown.
	if err := writeErr(t, s, rules.Write{Resource: target, Document: parse(t, doc)}); strings.Contains(err.Error(), literal) {
		t.Errorf("error = %v", err)
	}
	doc = `{"http":{"url":"http://x.example.com","headers":{"X-Api-Key":"` + literal + `"}},"auth":{"type":"bearer","token":"` + literal + `"}}`
	out := put(t, s, target, doc)
	if strings.Contains(document(out.Entry), literal) || strings.Contains(b.stored(t, target), literal) {
		t.Errorf("document = %s\nstored = %s", document(out.Entry), b.stored(t, target))
	}
	other := newStore(t, b, nil)
	other.Sync(t.Context())
	got := other.Catalog().Config.Targets[0]
	if got.Auth.Token.Reveal() != literal || got.HTTP.Headers["X-Api-Key"] != literal {
		t.Errorf("another process opens token %q, header %q", got.Auth.Token.Reveal(), got.HTTP.Headers["X-Api-Key"])
	}

	// What was sealed for one resource is of no use to another.
	evil := bridge.Resource{Kind: bridge.KindTarget, Name: "evil"}
	moved := strings.Replace(string(out.Entry.Document.AppendJSON(nil)), `"name":"ci"`, `"name":"evil"`, 1)
	if err := writeErr(t, s, rules.Write{Resource: evil, Document: parse(t, moved)}); !strings.Contains(err.Error(), "a sealed secret that this resource does not have") {
		t.Errorf("a sealed reference of another resource: %v", err)
	}
	row := strings.Replace(strings.ReplaceAll(b.stored(t, target), `\"name\":\"ci\"`, `\"name\":\"evil\"`), `"name":"ci"`, `"name":"evil"`, 1)
	b.store(t, evil, row)
	third := newStore(t, b, nil)
	third.Sync(t.Context())
	if notes := strings.Join(third.Notes(), "\n"); !strings.Contains(notes, "was moved here from another resource") {
		t.Errorf("notes = %q", notes)
	}
}

func TestLiteralsNeedTheKeyAndPlaceholdersAreNone(t *testing.T) {
	t.Parallel()
	s := newStore(t, newBroker(t), func(c *rules.Config) { c.Keys = rules.Keyring{} })
	for doc, want := range map[string]string{
		`{"scheme":"github","secrets":["literal"]}`:           "QUEENBRIDGE_ENCRYPTION_KEY is not set",
		`{"scheme":"github","secrets":["***"]}`:               "*** stands for a secret that is not shown",
		`{"scheme":"github","secrets":["${sealed:nowhere}"]}`: "a sealed secret that this resource does not have",
	} {
		if err := writeErr(t, s, rules.Write{Resource: source, Document: parse(t, doc)}); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", doc, err, want)
		}
	}
}

func TestKeysAreReplacedByResealing(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	with := func(keys ...byte) *rules.Store {
		s := newStore(t, b, func(c *rules.Config) { c.Keys = keyring(t, keys...) })
		s.Sync(t.Context())
		return s
	}
	before := put(t, with(1), source, `{"scheme":"github","secrets":["literal"]}`)
	if s := with(2); len(s.Catalog().Config.Sources) != 0 {
		t.Error("the new key alone opens what the old one sealed")
	}
	both := with(2, 1)
	out, err := both.Reseal(t.Context(), "ann")
	if err != nil || len(out.Changed) != 1 {
		t.Fatalf("Reseal = %+v, %v", out, err)
	}
	if again, err := both.Reseal(t.Context(), "ann"); err != nil || len(again.Changed) != 0 || again.Current != 1 {
		t.Errorf("second Reseal = %+v, %v", again, err)
	}
	s := with(2)
	if c := s.Catalog().Config; len(c.Sources) != 1 || c.Sources[0].Secrets[0].Reveal() != "literal" {
		t.Errorf("the new key alone does not open it: %q", s.Notes())
	}
	e, _ := s.Catalog().Entry(source)
	if document(e) != document(before.Entry) {
		t.Errorf("document = %s, want %s", document(e), document(before.Entry))
	}
	if _, err := with(3).Reseal(t.Context(), "ann"); !is[*rules.SealedError](err) {
		t.Errorf("Reseal without the key = %v", err)
	}
}

func TestTooLargeResourceIsRefused(t *testing.T) {
	t.Parallel()
	s := newStore(t, newBroker(t), nil)
	doc := `{"http":{"url":"http://x.example.com","headers":{"X-Long":"` + strings.Repeat("x", 70<<10) + `"}}}`
	if err := writeErr(t, s, rules.Write{Resource: target, Document: parse(t, doc)}); !is[*rules.TooLargeError](err) {
		t.Errorf("Write = %.200v", err)
	}
}

func TestStoredBesideTheFileTakesOverWhenTheFileLetsGo(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	s := newStore(t, b, func(c *rules.Config) {
		c.File = fileOf(t, `{"targets":[{"name":"ci","http":{"url":"http://file.example.com"}}],"routes":[{"name":"pushes","queue":"github","target":"ci"}]}`)
	})
	for r, doc := range map[bridge.Resource]string{target: targetDoc, route: routeDoc} {
		if _, err := s.Write(t.Context(), rules.Write{Resource: r, Document: parse(t, doc), Stored: true}); err != nil {
			t.Fatalf("Write(%s): %v", r, err)
		}
	}
	var states []int
	s.Subscribe(func(c *rules.Catalog) { states = append(states, len(c.Config.Routes)*10+len(c.Config.Targets)) })
	s.SetFile(fileOf(t, `{}`))
	c := s.Catalog().Config
	if len(c.Targets) != 1 || c.Targets[0].HTTP.URL != "http://ci.example.com/hook" || len(c.Routes) != 1 || len(states) != 1 || states[0] != 11 {
		t.Errorf("targets = %+v, states = %v, want the stored ones in one step", c.Targets, states)
	}
}

func TestARestoredBackupIsSeenWithoutANewGeneration(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	s := newStore(t, b, nil)
	put(t, s, target, targetDoc)
	b.store(t, source, rowOf(t, source, "1", `{"name":"github","scheme":"none"}`, ""))
	fresh := newStore(t, b, nil)
	fresh.Sync(context.WithoutCancel(t.Context()))
	if len(fresh.Catalog().Config.Sources) != 1 {
		t.Errorf("notes = %q", fresh.Notes())
	}
}
