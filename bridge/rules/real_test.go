package rules_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/rules"
)

// TestRealQueenKeepsRules proves on a real Queen (make test-real) what the
// catalog counts on: a change and the generation are written both or neither,
// expected versions are compared, documents come back as they were written.
func TestRealQueenKeepsRules(t *testing.T) {
	url := os.Getenv("QUEEN_REAL_URL")
	if url == "" {
		if os.Getenv("QUEENBRIDGE_REQUIRE_REAL") != "" {
			t.Fatal("QUEEN_REAL_URL is not set")
		}
		t.Skip("no real Queen: make test-real")
	}
	client, err := queen.New(queen.Config{URLs: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	name := "real-" + strings.ToLower(rand.Text()[:8])
	r := bridge.Resource{Kind: bridge.KindTarget, Name: name}
	long := bridge.Resource{Kind: bridge.KindQueue, Name: strings.Repeat("日", 240) + name}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second) // that of the test has ended
		defer cancel()
		for _, r := range []bridge.Resource{r, long} {
			_, _ = client.KV(ctx, []queen.KVOp{{Op: "delete", Namespace: bridge.KVNamespace, Key: bridge.RuleKey(r)}})
		}
	})
	one, two := newStore(t, client, nil), newStore(t, client, nil)
	doc := `{"name":"` + name + `","http":{"url":"http://127.0.0.1:9/é","headers":{"X-Api-Key":"literal"}},"rate":{"per_second":1.50}}`
	first := put(t, one, r, doc)
	put(t, one, long, `{"retention":"24h"}`)
	two.Sync(t.Context())
	e, ok := two.Catalog().Entry(r)
	if !ok || e.Version != first.Entry.Version || document(e) != document(first.Entry) || !strings.Contains(document(e), "1.50") {
		t.Fatalf("another process reads %+v, want %+v", e, first.Entry)
	}
	put(t, two, r, `{"http":{"url":"http://127.0.0.1:9/two"}}`)
	err = writeErr(t, one, rules.Write{Resource: r, Document: parse(t, `{"http":{"url":"http://127.0.0.1:9/three"}}`),
		Precondition: rules.Precondition{Match: []int64{first.Entry.Version}}})
	if !is[*rules.PreconditionError](err) {
		t.Errorf("Write of an old version = %v", err)
	}

	// A change that counts on an old generation leaves nothing behind.
	stale := int64(1)
	_, err = client.KV(t.Context(), []queen.KVOp{
		{Op: "put", Namespace: bridge.KVNamespace, Key: bridge.RuleKey(r), Value: json.RawMessage(`{"a":1}`), Required: true},
		{Op: "put", Namespace: bridge.KVNamespace, Key: bridge.RuleGenerationKey, Value: json.RawMessage(`{}`), Expect: &stale, Required: true},
	})
	if refused := (*queen.RollbackError)(nil); !is[*queen.RollbackError](err) {
		t.Errorf("a stale generation = %v, want a %T", err, refused)
	}
	for _, d := range []bridge.Resource{r, long} {
		if out, err := one.Delete(t.Context(), rules.Delete{Resource: d}); err != nil || !out.Gone {
			t.Errorf("Delete(%.20s) = %+v, %v", d, out, err)
		}
	}
}
