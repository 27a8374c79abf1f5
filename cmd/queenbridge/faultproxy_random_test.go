package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// story is one event of the random test: its body tells what becomes of it.
type story struct {
	Key  string `json:"key"`
	N    int    `json:"n"`
	Fail int    `json:"fail"`           // calls that fail before one succeeds
	Bad  int    `json:"bad,omitempty"`  // refused: a dead letter at once
	Lost int    `json:"lost,omitempty"` // fails for ever: a dead letter when its attempts are used up
	Slow int    `json:"slow,omitempty"` // runs longer than detach_after
	Pad  string `json:"pad"`
}

func (s story) id() string { return fmt.Sprint(s.Key, "-", s.N) }

const maxTries = 3 // max_attempts of both routes

// calls is how many calls an event is due, and the class of its dead letter.
func (s story) calls() (n int, class string) {
	switch {
	case s.Bad == 1:
		return 1, "http_4xx"
	case s.Lost == 1:
		return maxTries, "exhausted"
	}
	return s.Fail + 1, ""
}

// tell makes the n-th event of a key.
func tell(seed uint64, key string, n int) story {
	h := fnv.New64a()
	fmt.Fprint(h, seed, key, n)
	s := story{Key: key, N: n, Pad: "é\u0000\U0001F4A9"}
	switch d := h.Sum64() % 40; {
	case d < 2:
		s.Bad = 1
	case d < 3:
		s.Lost = 1
	case d < 5:
		s.Slow = 1
	case d < 12:
		s.Fail = 1 + int(d%2)
	}
	return s
}

// actor is the function of one route. It counts its calls itself, so that what
// it answers does not depend on what the bridge says of them.
type actor struct {
	mu    sync.Mutex
	tried map[string]int
	ended map[string]int // per key: events answered for good, 2xx or as dead letters
	early []string       // first calls before the event before it had ended
}

func newActor() *actor { return &actor{tried: map[string]int{}, ended: map[string]int{}} }

func (a *actor) answer(ctx context.Context, c call) int {
	var s story
	if json.Unmarshal(c.body, &s) != nil {
		return http.StatusTeapot // its body was changed: a dead letter nobody expects
	}
	tries := a.begin(s, string(c.body))
	if s.Slow == 1 && tries == 1 {
		slow := time.NewTimer(800 * time.Millisecond)
		defer slow.Stop()
		select {
		case <-slow.C:
		case <-ctx.Done():
		}
	}
	due, _ := s.calls()
	if tries == due {
		a.mu.Lock()
		a.ended[s.Key]++
		a.mu.Unlock()
	}
	switch {
	case s.Bad == 1:
		return http.StatusBadRequest
	case s.Lost == 1, tries < due:
		return http.StatusInternalServerError
	}
	return http.StatusOK
}

func (a *actor) begin(s story, body string) (tries int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tried[body] == 0 && a.ended[s.Key] < s.N {
		a.early = append(a.early, fmt.Sprintf("%s after %d", body, a.ended[s.Key]))
	}
	a.tried[body]++
	return a.tried[body]
}

// checkCalls checks every accepted event of a route: it was called as often as
// it is due and at most so many times more, under one id, with its bytes; it
// is a dead letter exactly if it should be, or may be by late.
func (a *actor) checkCalls(t *testing.T, p *process, route string, f *target, stories map[string]story, more func(story) int, late detached) {
	t.Helper()
	ids := map[string]string{}
	for _, c := range f.seen() {
		body := string(c.body)
		if id := ids[body]; c.id == "" || id != "" && id != c.id {
			t.Errorf("%s: %s came under ids %q and %q", route, body, id, c.id)
		}
		ids[body] = c.id
	}
	dead, extra := p.deadBodies(route), 0
	for body, s := range stories {
		due, class := s.calls()
		n := a.tried[body]
		if n < due || n > due+more(s) {
			t.Errorf("%s: %s was called %d times, want %d to %d", route, body, n, due, due+more(s))
		}
		extra += n - due
		var want []string
		classes := dead[body]
		switch {
		case class != "":
			want = []string{class}
		case late.last[s.id()] && len(classes) == 1:
			want = []string{"exhausted"}
		}
		if !slices.Equal(classes, want) {
			t.Errorf("%s: dead letters of %s: %v, want %v", route, body, classes, want)
		}
		delete(dead, body)
	}
	if len(dead) > 0 || len(a.tried) != len(stories) {
		t.Errorf("%s: %d events called, %d accepted; dead letters of none: %v", route, len(a.tried), len(stories), dead)
	}
	t.Logf("%s: %d events, %d calls, %d more than due", route, len(stories), len(f.seen()), extra)
}

// seedOf is the test's seed: a new one each time, unless told.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if told := os.Getenv("QUEENBRIDGE_TEST_SEED"); told != "" {
		n, err := strconv.ParseUint(told, 10, 64)
		if err != nil {
			t.Fatalf("QUEENBRIDGE_TEST_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("QUEENBRIDGE_TEST_SEED=%d", seed)
	return seed
}

// everything is what may happen to each class at random.
func everything() map[class][]fault {
	catalog := map[class][]fault{}
	for _, c := range allClasses {
		catalog[c] = append(anyCall[:len(anyCall):len(anyCall)], databaseAway(c))
	}
	for _, c := range []class{kv, timers, other} { // at the start a 404 means a broker too old, for good
		catalog[c] = slices.DeleteFunc(slices.Clone(catalog[c]), func(f fault) bool { return f.name == missing.name })
	}
	for _, c := range []class{popSource, popRetry, popDead} { // not pinned ones: what is corrupted then is lost for good
		catalog[c] = append(catalog[c], corrupted)
	}
	catalog[transaction] = append(catalog[transaction], transientRefusal)
	return catalog
}

// TestFlowThroughRandomFaults sends events of several keys to two routes of
// one queue, with ordering none and partition, while one in six requests
// between bridge and broker goes wrong in some way. What must hold:
//
//   - a provider hears 200 or 503, nothing else;
//   - every event answered 200 is called until it is answered for good, with
//     the exact bytes, under one webhook-id per route;
//   - it is called as often as its answers make due, and no more, but for one
//     call per lease that may have run out (60 s, in order 15 s) and one per
//     call that outlasted detach_after, whose cancel may have been lost;
//   - dead letters are exactly the events that were refused or used up their
//     attempts, once each, with their class; and perhaps, as exhausted, one whose
//     last attempt outlasted detach_after, whose cancel may have been lost;
//   - in order, no event is called before the one before it of the same key
//     ended;
//   - in the end no event, retry, timer or dead envelope is left in Queen.
func TestFlowThroughRandomFaults(t *testing.T) {
	t.Parallel()
	const keys, perKey, odds = 12, 25, 1.0 / 6
	seed := seedOf(t)
	w := newFaultyWorld(t)
	w.proxy.randomly(seed, odds, everything())
	free, strict := newActor(), newActor()
	none, ordered := newTarget(t, free.answer), newTarget(t, strict.answer)
	p := w.start(w.twoRoutes(none.URL, ordered.URL))
	begun := time.Now()
	stories := map[string]story{}
	var mu sync.Mutex
	var posters sync.WaitGroup
	for k := range keys {
		key := fmt.Sprint("k", k)
		posters.Go(func() {
			for n := range perKey {
				s := tell(seed, key, n)
				body, _ := json.Marshal(s)
				p.accepted(w.path(), s.id(), string(body))
				mu.Lock()
				stories[string(body)] = s
				mu.Unlock()
			}
		})
	}
	posters.Wait()
	for _, route := range []string{w.name("none"), w.name("ordered")} {
		p.drained(w.name("main"), route, 2*patient)
	}
	lasted := time.Since(begun)
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	late := p.detached()
	free.checkCalls(t, p, w.name("none"), none, stories, func(s story) int { return late.calls[s.id()] + int(lasted/(60*time.Second)) }, late)
	strict.checkCalls(t, p, w.name("ordered"), ordered, stories, func(story) int { return int(lasted / (15 * time.Second)) }, detached{})
	for _, early := range strict.early {
		t.Errorf("in order: called %s events of its key had ended", early)
	}
	t.Logf("in %s: %s", lasted.Round(time.Millisecond), w.proxy.summary())
}

// detached are the calls that outlasted detach_after, by event: how many, and
// whether the last attempt was one.
type detached struct {
	calls map[string]int
	last  map[string]bool
}

// detached reads the log.
func (p *process) detached() detached {
	d := detached{map[string]int{}, map[string]bool{}}
	for line := range strings.Lines(p.log()) {
		var record struct {
			Event    string
			Attempt  int
			Detached bool
		}
		if json.Unmarshal([]byte(line), &record) == nil && record.Detached {
			id := strings.TrimPrefix(record.Event, "github:")
			d.calls[id]++
			d.last[id] = d.last[id] || record.Attempt == maxTries
		}
	}
	return d
}

// twoRoutes is a queue partitioned by key with a route of each ordering.
func (w *faultyWorld) twoRoutes(none, ordered string) string {
	retry := fmt.Sprintf("retry: {max_attempts: %d, backoff: [200ms]}", maxTries)
	return fmt.Sprintf(`
sources:
  - {name: %[1]s, scheme: github, secrets: [%[2]q], partition: "body:key"}
targets:
  - {name: %[3]s, http: {url: %[5]q, timeout: 8s}}
  - {name: %[4]s, http: {url: %[6]q}}
routes:
  - {name: %[3]s, queue: %[1]s, target: %[3]s, detach_after: 300ms, %[7]s}
  - {name: %[4]s, queue: %[1]s, target: %[4]s, ordering: partition, %[7]s}
`, w.name("main"), hexSecret, w.name("none"), w.name("ordered"), none, ordered, retry)
}
