package rules_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/rules"
)

func TestWrittenResourceIsInUseAtOnceAndReadsAsWritten(t *testing.T) {
	t.Parallel()
	s := newStore(t, newBroker(t), nil)
	var seen []*rules.Catalog
	s.Subscribe(func(c *rules.Catalog) { seen = append(seen, c) })
	out := put(t, s, target, targetDoc)
	if !out.Changed || out.Before != 0 || out.Entry.Version == 0 || out.Entry.By != "test" {
		t.Errorf("Write = %+v", out)
	}
	if want := `{"name":"ci","http":{"url":"http://ci.example.com/hook","timeout":"60s"}}`; document(out.Entry) != want {
		t.Errorf("document = %s, want %s", document(out.Entry), want)
	}
	if len(seen) == 0 || len(seen[len(seen)-1].Config.Targets) != 1 || seen[len(seen)-1].Config.Targets[0].HTTP.Timeout != time.Minute {
		t.Errorf("subscriber saw %v", seen)
	}
}

func TestAnotherReplicaAgreesWithinThreeSeconds(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	one, two := newStore(t, b, nil), running(t, newStore(t, b, nil))
	put(t, one, target, targetDoc)
	eventually(t, two, 3*time.Second, "the target", func(c *rules.Catalog) bool { return len(c.Config.Targets) == 1 })
	if _, err := one.Delete(t.Context(), rules.Delete{Resource: target}); err != nil {
		t.Fatal(err)
	}
	eventually(t, two, 3*time.Second, "no target", func(c *rules.Catalog) bool { return len(c.Config.Targets) == 0 })
}

func TestWritingTheSameAgainChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStore(t, newBroker(t), nil)
	first := put(t, s, target, targetDoc)
	reordered := `{"http":{"timeout":"60s","url":"http://ci.example.com/hook"},"name":"ci","concurrency":null}`
	out, err := s.Write(t.Context(), rules.Write{Resource: target, Document: parse(t, reordered),
		Precondition: rules.Precondition{Match: []int64{7}}}) // as after a lost answer
	if err != nil || out.Changed || out.Entry.Version != first.Entry.Version {
		t.Errorf("Write = %+v, %v, want version %d unchanged", out, err, first.Entry.Version)
	}
}

func TestPreconditions(t *testing.T) {
	t.Parallel()
	s := newStore(t, newBroker(t), nil)
	v1 := put(t, s, target, targetDoc).Entry.Version
	other := parse(t, `{"http":{"url":"http://other.example.com"}}`)
	tests := []struct {
		name string
		w    rules.Write
	}{
		{"another version", rules.Write{Resource: target, Document: other, Precondition: rules.Precondition{Match: []int64{v1 + 1}}}},
		{"must be absent", rules.Write{Resource: target, Document: other, Precondition: rules.Precondition{Absent: true}}},
		{"must exist", rules.Write{Resource: bridge.Resource{Kind: bridge.KindTarget, Name: "new"}, Document: other, Precondition: rules.Precondition{Exists: true}}},
	}
	for _, tt := range tests {
		if err := writeErr(t, s, tt.w); !is[*rules.PreconditionError](err) {
			t.Errorf("%s: %v, want a precondition error", tt.name, err)
		}
	}
	if _, err := s.Write(t.Context(), rules.Write{Resource: target, Document: other, Precondition: rules.Precondition{Match: []int64{v1}}}); err != nil {
		t.Errorf("Write at the right version: %v", err)
	}
	if _, err := s.Delete(t.Context(), rules.Delete{Resource: target, Precondition: rules.Precondition{Match: []int64{v1}}}); !is[*rules.PreconditionError](err) {
		t.Errorf("Delete of an old version = %v", err)
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func TestOfRacingWritersOneWinsAndTheOtherIsTold(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	one, two := newStore(t, b, nil), newStore(t, b, nil)
	v := put(t, one, target, targetDoc).Entry.Version
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, s := range []*rules.Store{one, two} {
		doc := parse(t, `{"http":{"url":"http://`+string(rune('a'+i))+`.example.com"}}`)
		wg.Go(func() {
			_, errs[i] = s.Write(t.Context(), rules.Write{Resource: target, Document: doc, Precondition: rules.Precondition{Match: []int64{v}}})
		})
	}
	wg.Wait()
	if (errs[0] == nil) == (errs[1] == nil) || !is[*rules.PreconditionError](errors.Join(errs...)) {
		t.Errorf("errors = %v, want one precondition error", errs)
	}
}

// TestOfManyWritersOnTwoReplicasAllSucceed: what they write does not contradict
// each other, so nobody is sent away.
func TestOfManyWritersOnTwoReplicasAllSucceed(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	stores := []*rules.Store{newStore(t, b, nil), newStore(t, b, nil)}
	const each = 60
	doc := parse(t, targetDoc)
	var wg sync.WaitGroup
	for i := range 2 * each {
		wg.Go(func() {
			r := bridge.Resource{Kind: bridge.KindTarget, Name: fmt.Sprintf("t%d", i)}
			if _, err := stores[i%2].Write(t.Context(), rules.Write{Resource: r, Document: doc}); err != nil {
				t.Errorf("Write(%s) = %v", r, err)
			}
		})
	}
	wg.Wait()
	stores[0].Sync(t.Context())
	if n := len(stores[0].Catalog().Config.Targets); n != 2*each {
		t.Errorf("%d targets, want %d", n, 2*each)
	}
}

// TestRacingChangesNeverContradictEachOther deletes a target on one replica
// while a route to it is made on another: either may win, never both.
func TestRacingChangesNeverContradictEachOther(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	for range 10 {
		one, two := newStore(t, b, nil), newStore(t, b, nil)
		put(t, one, target, targetDoc)
		var wg sync.WaitGroup
		var deleted, made error
		wg.Go(func() { _, deleted = one.Delete(t.Context(), rules.Delete{Resource: target}) })
		doc := parse(t, routeDoc)
		wg.Go(func() { _, made = two.Write(t.Context(), rules.Write{Resource: route, Document: doc}) })
		wg.Wait()
		if (deleted == nil) == (made == nil) {
			t.Fatalf("delete of the target: %v; route to it: %v", deleted, made)
		}
		third := newStore(t, b, func(c *rules.Config) { c.DrainAfter, c.Poll = time.Millisecond, time.Millisecond })
		_, _ = third.Delete(t.Context(), rules.Delete{Resource: route}) // there may be none
		running(t, third)
		eventually(t, third, 10*time.Second, "no route", func(c *rules.Catalog) bool { return !c.Synced.IsZero() && len(c.Config.Routes) == 0 })
	}
}

func TestLostAnswerOfAWriteIsFoundOut(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	s := newStore(t, b, nil)
	lost := false
	b.after = func(ops []queen.KVOp) error {
		if ops[0].Op == "put" && !lost {
			lost = true
			return &queen.StatusError{Status: 502, Text: "lost"}
		}
		return nil
	}
	out := put(t, s, target, targetDoc)
	if !lost || !out.Changed || out.Entry.Version == 0 {
		t.Errorf("Write = %+v (lost: %t)", out, lost)
	}
	b.after = nil
	put(t, s, target, `{"http":{"url":"http://second.example.com"}}`) // the generation is right
}

func TestInvalidWritesAreRefusedWithEveryProblem(t *testing.T) {
	t.Parallel()
	s := newStore(t, newBroker(t), nil)
	err := writeErr(t, s, rules.Write{Resource: route, Document: parse(t,
		`{"queue":"github","target":"nowhere","retry":{"max_attempts":0},"filtr":"true","ordering":"none","concurrency":-1}`)})
	invalid, ok := errors.AsType[*rules.InvalidError](err)
	if !ok {
		t.Fatalf("error = %v", err)
	}
	var paths []string
	for _, p := range invalid.Problems {
		paths = append(paths, p.Path)
	}
	got := strings.Join(paths, " ")
	for _, want := range []string{"filtr", "target", "retry.max_attempts", "concurrency"} {
		if !strings.Contains(got, want) {
			t.Errorf("paths = %q, want %s, too", got, want)
		}
	}
	if _, ok := s.Catalog().Entry(route); ok {
		t.Error("it was stored all the same")
	}
}

func TestAChangeThatBreaksAnotherResourceIsRefused(t *testing.T) {
	t.Parallel()
	s := newStore(t, newBroker(t), nil)
	put(t, s, target, targetDoc)
	put(t, s, route, routeDoc)
	other := bridge.Resource{Kind: bridge.KindRoute, Name: "audit"}
	put(t, s, other, `{"queue":"github","target":"ci"}`)
	err := writeErr(t, s, rules.Write{Resource: route, Document: parse(t, `{"queue":"github","target":"ci","group":"audit"}`)})
	if !is[*rules.InvalidError](err) || !strings.Contains(err.Error(), "routes/audit.group: ") {
		t.Errorf("error = %v, want a problem of routes/audit.group", err)
	}
}

// An admin token is no shell: only the file may name a program to run.
func TestStoredTargetRunsNoProgram(t *testing.T) {
	t.Parallel()
	s := newStore(t, newBroker(t), nil)
	err := writeErr(t, s, rules.Write{Resource: target,
		Document: parse(t, `{"http":{"url":"https://ci.example.com"},"auth":{"type":"oidc","command":["/bin/sh","-c","id"]}}`)})
	invalid, ok := errors.AsType[*rules.InvalidError](err)
	if !ok || len(invalid.Problems) != 1 || invalid.Problems[0].Path != "auth.command" {
		t.Errorf("Write = %v, want one problem of auth.command", err)
	}
}

func TestFileOwnsItsNames(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	put(t, newStore(t, b, nil), target, targetDoc)
	s := newStore(t, b, func(c *rules.Config) {
		c.File = fileOf(t, `{"targets":[{"name":"ci","http":{"url":"http://file.example.com"}}]}`)
	})
	if err := writeErr(t, s, rules.Write{Resource: target, Document: parse(t, targetDoc)}); !errors.Is(err, rules.ErrManagedByFile) {
		t.Errorf("Write = %v", err)
	}
	if _, err := s.Delete(t.Context(), rules.Delete{Resource: target}); !errors.Is(err, rules.ErrManagedByFile) {
		t.Errorf("Delete = %v", err)
	}
	e, _ := s.Catalog().Entry(target)
	if !e.File || len(e.Problems) == 0 || s.Catalog().Config.Targets[0].HTTP.URL != "http://file.example.com" {
		t.Errorf("entry = %+v, want the file's, with a warning", e)
	}
	if out, err := s.Delete(t.Context(), rules.Delete{Resource: target, Stored: true}); err != nil || !out.Gone {
		t.Errorf("Delete of the stored one = %+v, %v", out, err)
	}
	if e, _ := s.Catalog().Entry(target); len(e.Problems) > 0 || !e.File {
		t.Errorf("entry = %+v", e)
	}
}

func TestWhatIsNeededIsNotDeleted(t *testing.T) {
	t.Parallel()
	s := newStore(t, newBroker(t), func(c *rules.Config) { c.DrainAfter = time.Hour })
	queue := bridge.Resource{Kind: bridge.KindQueue, Name: "github"}
	put(t, s, queue, `{"retention":"24h"}`)
	put(t, s, target, targetDoc)
	put(t, s, source, `{"scheme":"none"}`)
	put(t, s, route, routeDoc)
	for _, r := range []bridge.Resource{target, queue} {
		if _, err := s.Delete(t.Context(), rules.Delete{Resource: r}); !is[*rules.InUseError](err) {
			t.Errorf("Delete(%s) = %v", r, err)
		}
	}
	if out, err := s.Delete(t.Context(), rules.Delete{Resource: source}); err != nil || !out.Gone {
		t.Errorf("Delete(%s) = %+v, %v", source, out, err)
	}
	out, err := s.Delete(t.Context(), rules.Delete{Resource: route})
	if err != nil || out.Gone || out.Entry.Draining.IsZero() {
		t.Fatalf("Delete(%s) = %+v, %v, want it draining", route, out, err)
	}
	if c := s.Catalog(); len(c.Config.Routes) != 1 || !slices.Equal(c.Draining(), []bridge.Resource{route}) {
		t.Errorf("draining = %v, routes = %v", c.Draining(), c.Config.Routes)
	}
	if _, err := s.Delete(t.Context(), rules.Delete{Resource: target}); !is[*rules.InUseError](err) {
		t.Errorf("Delete of a draining route's target = %v", err)
	}
	if err := writeErr(t, s, rules.Write{Resource: route, Document: parse(t, routeDoc)}); !errors.Is(err, rules.ErrDraining) {
		t.Errorf("Write of a draining route = %v", err)
	}
	if again, err := s.Delete(t.Context(), rules.Delete{Resource: route}); err != nil || again.Gone {
		t.Errorf("second Delete = %+v, %v", again, err)
	}
}

// TestATargetMayDrainWithItsRoutes: it serves their retries until the last of them
// is gone, and no other route may begin to use it.
func TestATargetMayDrainWithItsRoutes(t *testing.T) {
	t.Parallel()
	var busy atomic.Bool
	busy.Store(true)
	s := newStore(t, newBroker(t), func(c *rules.Config) {
		c.DrainAfter, c.Poll = time.Millisecond, time.Millisecond
		c.Left = func(context.Context, string) (string, error) {
			if busy.Load() {
				return "a retry is scheduled", nil
			}
			return "", nil
		}
	})
	put(t, s, target, targetDoc)
	put(t, s, route, routeDoc)
	out, err := s.Delete(t.Context(), rules.Delete{Resource: target, Drain: true})
	if err != nil || out.Gone || out.Entry.Draining.IsZero() || !slices.Equal(out.Routes, []bridge.Resource{route}) {
		t.Fatalf("Delete = %+v, %v, want both draining", out, err)
	}
	if c := s.Catalog(); len(c.Config.Targets) != 1 || !slices.Equal(c.DrainingRoutes(), []bridge.Resource{route}) || len(c.Draining()) != 2 {
		t.Errorf("draining = %v, %d targets", c.Draining(), len(c.Config.Targets))
	}
	if again, err := s.Delete(t.Context(), rules.Delete{Resource: target}); err != nil || again.Gone {
		t.Errorf("second Delete = %+v, %v", again, err)
	}
	if err := writeErr(t, s, rules.Write{Resource: target, Document: parse(t, targetDoc)}); !errors.Is(err, rules.ErrDraining) {
		t.Errorf("Write of a draining target = %v", err)
	}
	other := bridge.Resource{Kind: bridge.KindRoute, Name: "other"}
	if err := writeErr(t, s, rules.Write{Resource: other, Document: parse(t, routeDoc)}); !is[*rules.InvalidError](err) || !strings.Contains(err.Error(), "target: target \"ci\" was deleted") {
		t.Errorf("Write of a route to it = %v", err)
	}
	running(t, s)
	busy.Store(false)
	eventually(t, s, 10*time.Second, "neither is there", func(c *rules.Catalog) bool { return len(c.Config.Routes)+len(c.Config.Targets) == 0 })
}

// TestARouteThatHoldsNothingNeedNotWaitForLeases: what its source's group has not
// consumed may be leased, and is waited for.
func TestARouteThatHoldsNothingNeedNotWaitForLeases(t *testing.T) {
	t.Parallel()
	var settled atomic.Bool
	asked := make(chan bridge.Route, 1)
	s := newStore(t, newBroker(t), func(c *rules.Config) {
		c.KnownAfter, c.DrainAfter, c.Poll = time.Millisecond, time.Hour, time.Millisecond
		c.Settled = func(_ context.Context, r bridge.Route) (bool, error) {
			select {
			case asked <- r:
			default:
			}
			return settled.Load(), nil
		}
	})
	put(t, s, target, targetDoc)
	put(t, s, route, routeDoc)
	if _, err := s.Delete(t.Context(), rules.Delete{Resource: route}); err != nil {
		t.Fatal(err)
	}
	running(t, s)
	if r := <-asked; r.Name != route.Name || r.Queue != "github" || r.Group != route.Name {
		t.Errorf("asked about %+v", r)
	}
	if len(s.Catalog().Config.Routes) != 1 {
		t.Fatal("the route went while something may have been leased")
	}
	settled.Store(true)
	eventually(t, s, 10*time.Second, "no route", func(c *rules.Catalog) bool { return len(c.Config.Routes) == 0 })
}

func TestDrainedRouteGoesOnceNothingOfItIsLeft(t *testing.T) {
	t.Parallel()
	var busy atomic.Bool
	busy.Store(true)
	counted := make(chan struct{})
	looks := 0
	s := newStore(t, newBroker(t), func(c *rules.Config) {
		c.DrainAfter, c.Poll = time.Millisecond, time.Millisecond
		c.Left = func(_ context.Context, name string) (string, error) {
			if looks++; looks == 3 {
				close(counted)
			}
			if name != route.Name {
				t.Errorf("asked about %s", name)
			}
			if busy.Load() {
				return "a retry is scheduled", nil
			}
			return "", nil
		}
	})
	put(t, s, target, targetDoc)
	put(t, s, route, routeDoc)
	if _, err := s.Delete(t.Context(), rules.Delete{Resource: route}); err != nil {
		t.Fatal(err)
	}
	running(t, s)
	<-counted
	if len(s.Catalog().Config.Routes) != 1 {
		t.Fatal("the route went while a retry was waiting")
	}
	busy.Store(false)
	eventually(t, s, 10*time.Second, "no route", func(c *rules.Catalog) bool { return len(c.Config.Routes) == 0 })
}
