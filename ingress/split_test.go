package ingress_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
	"github.com/queenbridge/queenbridge/ingress"
)

func TestSplitBatchIsOneEventPerItemInOnePush(t *testing.T) {
	t.Parallel()
	src := bridge.Source{Name: "sg", Scheme: "none", Split: "@this", TransactionID: "body:id", EventType: "body:type", Partition: "body:key"}
	s, q := newServer(t, sources(src))
	body := `[{"id":"1","type":"a","key":"k"}, {"id":2,"type":"b"},{"x" : 1.10},"text"]`
	if rec := call(s.Handler(), "/in/sg", body); rec.Code != 200 {
		t.Fatalf("status %d, want 200", rec.Code)
	}
	var got []string
	for _, e := range storedEvents(t, q) {
		got = append(got, e.ID+" "+e.Type+" "+string(e.Body))
	}
	want := []string{
		`none:1 a {"id":"1","type":"a","key":"k"}`, `none:2 b {"id":2,"type":"b"}`,
		"none:sha256:" + sha256Hex(`{"x" : 1.10}`) + `  {"x" : 1.10}`, "none:sha256:" + sha256Hex(`"text"`) + `  "text"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if n := len(q.Pushes()); n != 1 {
		t.Errorf("%d pushes, want 1", n)
	}
	if q.Items()[0].Partition != "k" {
		t.Errorf("partition %q, want k", q.Items()[0].Partition)
	}
	for _, body := range []string{"[]", `{"id":"doc"}`, "no json"} {
		if rec := call(s.Handler(), "/in/sg", body); rec.Code != 200 {
			t.Errorf("body %s: status %d, want 200", body, rec.Code)
		}
	}
	if n := len(q.Items()); n != 6 {
		t.Errorf("%d items, want 6: none of an empty batch, one of what is no array", n)
	}
	if rec := call(s.Handler(), "/in/sg", "["+strings.Repeat("1,", 2000)+"1]"); rec.Code != 413 {
		t.Errorf("2001 items: status %d, want 413", rec.Code)
	}
}

func TestItemsOfABatchWithOneIdForAllAreKeptApart(t *testing.T) {
	t.Parallel()
	src := github("gh", "s")
	src.Split = "commits"
	s, q := newServer(t, sources(src))
	body := `{"commits":[{"n":1},{"n":2},{"n":1}]}`
	call(s.Handler(), "/in/gh", body, signed("s", "one", body)...)
	if n := len(q.Items()); n != 2 {
		t.Errorf("%d items, want 2 (one of the three is a repetition): %v", n, ids(q.Items()))
	}
}

func TestABatchWithAFailingItemIs503AndItsResendCompletesIt(t *testing.T) {
	t.Parallel()
	failing := true
	q := &queentest.Shelf{Verdict: func(it queen.Item) queen.PushStatus {
		if failing && it.TransactionID == "none:777" {
			return queen.PushBuffered
		}
		return ""
	}}
	src := bridge.Source{Name: "b", Scheme: "none", Split: "@this", TransactionID: "body:id"}
	s, _ := newServer(t, ingress.Config{Sources: []bridge.Source{src}, Queen: q})
	var items []string
	for i := range 1000 {
		items = append(items, fmt.Sprintf(`{"id":%d}`, i))
	}
	body := "[" + strings.Join(items, ",") + "]"
	if rec := call(s.Handler(), "/in/b", body); rec.Code != 503 || rec.Header().Get("Retry-After") == "" {
		t.Errorf("status %d, want 503 with Retry-After", rec.Code)
	}
	failing = false
	if rec := call(s.Handler(), "/in/b", body); rec.Code != 200 {
		t.Errorf("resend: status %d, want 200", rec.Code)
	}
	if n := len(q.Items()); n != 1000 {
		t.Errorf("%d items, want exactly 1000", n)
	}
}
