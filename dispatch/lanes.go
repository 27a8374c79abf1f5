package dispatch

import (
	"log/slog"
	"sync"
)

// maxFlights bounds the calls under way in one lane.
const maxFlights = 4

// lanes group settlements into calls of Queen, across partitions and routes: a
// call starts as soon as none is under way in its lane, what arrives meanwhile
// joins the next, and another flies only when a full one waits.
type lanes struct {
	d *Dispatcher
	// pack is how many of those that wait, at least one, go in one call, and
	// whether that is a full one.
	pack func(waiting []*settlement) (n int, full bool)
	// send returns when each settlement was told its end. The next call of the
	// lane need not wait for that once landed was called.
	send func(unit []*settlement, landed func())

	mu    sync.Mutex
	lanes map[laneKey]*lane
}

// laneKey is what settlements must share to go in one call: acks go to the node
// that granted the lease. Transactions take every group.
type laneKey struct{ node, group string }

// lane is what waits for one node.
type lane struct {
	waiting []*settlement
	flying  int
}

func newLanes(d *Dispatcher, pack func([]*settlement) (int, bool), send func([]*settlement, func())) *lanes {
	return &lanes{d: d, pack: pack, send: send, lanes: make(map[laneKey]*lane)}
}

// submit hands over a settlement; its end is told through done.
func (ls *lanes) submit(key laneKey, s *settlement) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.lanes[key]
	if l == nil {
		l = &lane{}
		ls.lanes[key] = l
	}
	l.waiting = append(l.waiting, s)
	ls.kick(l)
}

// kick starts what may fly; mu is held.
func (ls *lanes) kick(l *lane) {
	for len(l.waiting) > 0 && l.flying < maxFlights {
		n, full := ls.pack(l.waiting)
		if l.flying > 0 && !full {
			return
		}
		unit := l.leave(n)
		l.flying++
		ls.d.spawn(func() { ls.fly(l, unit) })
	}
}

// leave takes the first n out of those that wait.
func (l *lane) leave(n int) []*settlement {
	unit := l.waiting[:n:n]
	if l.waiting = l.waiting[n:]; len(l.waiting) == 0 {
		l.waiting = nil // lets go of the array, and of what it holds
	}
	return unit
}

func (ls *lanes) fly(l *lane, unit []*settlement) {
	landed := sync.OnceFunc(func() {
		ls.mu.Lock()
		l.flying--
		ls.kick(l)
		ls.mu.Unlock()
	})
	defer landed()
	defer dropOnPanic(ls.d.log, unit)
	ls.send(unit, landed)
}

// dropOnPanic lets go of what a panic left unsettled: it comes again when its
// lease runs out.
func dropOnPanic(log *slog.Logger, unit []*settlement) {
	if p := recover(); p != nil {
		log.Error("panic while settling", slog.Any(keyError, p), stack())
		for _, s := range unit {
			s.tell(result{verdict: refused})
		}
	}
}
