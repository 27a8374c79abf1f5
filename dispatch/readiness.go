package dispatch

import (
	"fmt"
	"strings"
	"time"
)

// Bounds of what Problems says: a thousand routes that fail alike are one
// line.
const (
	maxTroubles   = 10
	namedOfRoutes = 3
)

// Problems names the routes that cannot do their work, since when and why;
// none while all can. Routes whose trouble is the same are one problem. Those
// whose target is paused, held, broken, limited or disabled do what they
// should.
func (d *Dispatcher) Problems() []string {
	var groups []*problem
	byCause := map[string]*problem{}
	for _, s := range d.Status() {
		switch s.State {
		case StateUnreachable, StateBlocked, StateStopped:
		default:
			continue
		}
		key := string(s.State) + causeOf(s.Detail)
		if byCause[key] == nil {
			byCause[key] = &problem{RouteStatus: s}
			groups = append(groups, byCause[key])
		}
		byCause[key].add(s)
	}
	return texts(groups)
}

// causeOf is a detail without the request, which names the queue.
func causeOf(detail string) string {
	_, cause, _ := strings.Cut(detail, ": ")
	return cause
}

// problem is the trouble that some routes share: that of the first.
type problem struct {
	RouteStatus
	routes []string
}

func (p *problem) add(s RouteStatus) {
	p.routes = append(p.routes, s.Route)
	if s.Since.Before(p.Since) {
		p.Since, p.Detail = s.Since, s.Detail
	}
}

func (p *problem) String() string {
	who := "route " + p.Route
	if n := len(p.routes); n > 1 {
		named := p.routes[:min(n, namedOfRoutes)]
		if who = fmt.Sprintf("%d routes (%s", n, strings.Join(named, ", ")); n > len(named) {
			who += ", …"
		}
		who += ")"
	}
	if p.State == StateStopped {
		return who + ": stopped"
	}
	return fmt.Sprintf("%s: %s since %s: %s", who, p.State, p.Since.UTC().Format(time.RFC3339), p.Detail)
}

func texts(groups []*problem) []string {
	var list []string
	for i, p := range groups {
		if i == maxTroubles {
			return append(list, fmt.Sprintf("and more troubles of routes (%d)", len(groups)-i))
		}
		list = append(list, p.String())
	}
	return list
}

// Degraded names what does not work as it should while the routes do their
// work.
func (d *Dispatcher) Degraded() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.paused.trouble; t.err != nil && d.open {
		return []string{fmt.Sprintf("what others paused is not known since %s: %v", t.since.UTC().Format(time.RFC3339), t.err)}
	}
	return nil
}
