package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// filterConfig is one source whose queue three routes read, each with another
// filter: two ask for different events, the third for a member that only one
// has.
func (w *world) filterConfig(urls ...string) string {
	filters := []string{
		`event.type == "push" && event.body.ref == "refs/heads/main"`,
		`event.source.startsWith("main-") && event.headers["x-github-event"] in ["issues", "pull_request"] && event.body.action == "opened"`,
		`event.body.repository.id == 9007199254740993`,
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nsources:\n  - {name: %[1]s, scheme: github, secrets: [%[2]q]}\ntargets:\n", w.name("main"), hexSecret)
	for i, url := range urls {
		fmt.Fprintf(&b, "  - {name: %s, http: {url: %q}}\n", w.name(fmt.Sprint("f", i)), url)
	}
	b.WriteString("routes:\n")
	for i, ordering := range []string{"none", "none", "partition"} {
		name := w.name(fmt.Sprint("f", i))
		fmt.Fprintf(&b, "  - {name: %s, queue: %s, target: %s, ordering: %s, filter: %q}\n", name, w.name("main"), name, ordering, filters[i])
	}
	return b.String()
}

func TestRoutesFilterTheirEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	functions := []*target{newTarget(t, always(200)), newTarget(t, always(200)), newTarget(t, always(200))}
	p := w.start(w.filterConfig(functions[0].URL, functions[1].URL, functions[2].URL))
	send := func(id, kind, body string) {
		t.Helper()
		p.stored(webhook{scheme: "github", secret: hexSecret, path: w.path(), body: []byte(body),
			header: http.Header{"X-Github-Delivery": {id}, "X-Github-Event": {kind}}})
	}
	const exact, near = `"repository":{"id":9007199254740993}`, `"repository":{"id":9007199254740992}`
	main := `{"ref":"refs/heads/main",` + exact + `}`
	opened := `{"action":"opened", ` + near + ` }`
	send("1", "push", main)
	send("2", "push", `{"ref":"refs/heads/try",`+near+`}`)
	send("3", "issues", opened)
	send("4", "issues", `{"action":"closed",`+near+`}`)
	send("5", "ping", `{"zen":"s3cret"}`)

	for i, want := range []string{main, opened, main} {
		if got := string(functions[i].next().body); got != want {
			t.Errorf("function %d is called with %s, want %s", i, got, want)
		}
	}
	// Everything else is acked: counted, or, where the filter cannot say, dead.
	eventually(t, "all others are filtered", func() (bool, string) {
		_, metrics := get(t, p.admin+"/metrics")
		state := slices.DeleteFunc(strings.Split(metrics, "\n"), func(line string) bool {
			return !strings.HasPrefix(line, "queenbridge_dispatch_filtered_total")
		})
		done := true
		for i, n := range []int{4, 4, 3} {
			done = done && slices.Contains(state, fmt.Sprintf("queenbridge_dispatch_filtered_total{route=%q} %d", w.name(fmt.Sprint("f", i)), n))
		}
		return done, strings.Join(state, "\n")
	})
	eventually(t, "the ping is a dead letter of the third route", func() (bool, string) {
		return len(p.deadLetters(w.name("f2"))) == 1, ""
	})
	reason := p.deadLetters(w.name("f2"))[0].Error
	for _, part := range []string{`"class":"filter_error"`, `"attempts":0`, `event.body.repository`} {
		if !strings.Contains(reason, part) {
			t.Errorf("reason %s has no %s", reason, part)
		}
	}
	if strings.Contains(reason, "s3cret") || strings.Contains(p.log(), "s3cret") {
		t.Errorf("the reason or the log tells of the body: %s", reason)
	}
	for i, f := range functions {
		if n := len(f.seen()); n != 1 {
			t.Errorf("function %d was called %d times, want once", i, n)
		}
	}
}

func TestFilterOfForeignMessages(t *testing.T) {
	t.Parallel()
	w, f := newWorld(t), newTarget(t, always(200))
	p := w.start(w.route("github", hexSecret, f.URL, `    filter: 'event.id.startsWith("big-") && event.source == "" && event.body.width > 1000'`))
	p.push(w.name("main"), "a", "big-1", `{"width":900}`)
	p.push(w.name("main"), "a", "small-2", `{"width":2000}`)
	p.push(w.name("main"), "a", "big-3", `{"width": 2000}`)
	if got := string(f.next().body); got != `{"width": 2000}` && got != `{"width":2000}` {
		t.Errorf("called with %s", got)
	}
	p.stop()
	if n := len(f.seen()); n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
}
