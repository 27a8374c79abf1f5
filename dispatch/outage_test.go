package dispatch_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// Where Queen is away every feed of every route fails: the log and /readyz say
// it in a few lines, whatever the number of routes.
func TestOutageOfManyRoutesIsToldOfOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		var routes []bridge.Route
		for i := range 40 {
			routes = append(routes, testRoute(fmt.Sprint("r", i), fmt.Sprint("q", i)))
		}
		p := k.start(nil, routes...)
		k.wait(time.Second)
		for range 2 {
			k.outage(p)
		}
	})
}

func (k *kit) outage(p *process) {
	k.Helper()
	before := k.logs.all()
	k.faults.set(func(*http.Request) devbroker.Fault { return devbroker.Fault{Status: 503} })
	k.wait(time.Minute)
	problems := p.Problems()
	if len(problems) != 1 || !strings.Contains(problems[0], "40 routes (r0, r1, r2, …): unreachable since") || len(problems[0]) > 400 {
		k.Errorf("problems = %q", problems)
	}
	k.faults.set(nil)
	k.wait(2 * time.Minute)
	if problems := p.Problems(); len(problems) != 0 {
		k.Errorf("problems afterwards = %q", problems)
	}
	warnings, back := 0, 0
	for line := range strings.Lines(strings.TrimPrefix(k.logs.all(), before)) {
		switch {
		case strings.Contains(line, "level=DEBUG"):
		case strings.Contains(line, "no events from queen"):
			warnings++
		case strings.Contains(line, "queen answers again"):
			back++
		}
	}
	if warnings == 0 || warnings > 3 || back != 1 {
		k.Errorf("%d warnings and %d times that queen is back, want a few and one", warnings, back)
	}
}

// A queue of its own trouble is named beside an outage.
func TestQueueThatQueenRefusesIsToldOfDuringAnOutage(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		p := k.start(nil, testRoute("a", "qa"), testRoute("b", "qb"))
		k.wait(time.Second)
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if strings.HasSuffix(r.URL.Path, "/queue/qb") {
				return devbroker.Fault{Status: 403}
			}
			return devbroker.Fault{Status: 503}
		})
		k.wait(time.Minute)
		if problems := p.Problems(); len(problems) != 2 {
			t.Errorf("problems = %q", problems)
		}
		k.faults.set(nil)
		k.wait(2 * time.Minute)
		if !k.logs.has("level=WARN msg=\"no events from queen, trying again\" route=b target=fn queue=qb") {
			t.Error("the refusal of qb was not told of")
		}
		p.stop()
	})
}
