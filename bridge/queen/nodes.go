package queen

import (
	"encoding/base64"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// downFor is how long a node that failed is passed over (the official
// clients' number: queen-contract.md §12).
const downFor = 5 * time.Second

// slow is how long a node may take to be connected to where there are others,
// or to leave a call unanswered that its caller then gives up.
const slow = 2 * time.Second

// node is one Queen address.
type node struct {
	base *url.URL // without user, query, fragment and closing slash
	name string   // what Lease.Node and messages show
	auth string   // Authorization from the URL's user, or ""
	// downUntil is a Unix time in nanoseconds; 0: never failed.
	downUntil atomic.Int64
}

func newNode(u *url.URL) *node {
	n := &node{base: &url.URL{Scheme: u.Scheme, Host: u.Host,
		Path: strings.TrimSuffix(u.Path, "/"), RawPath: strings.TrimSuffix(u.RawPath, "/")}}
	if u.User != nil {
		password, _ := u.User.Password()
		n.auth = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
	}
	n.name = n.base.String()
	return n
}

func (n *node) up(now time.Time) bool { return now.UnixNano() >= n.downUntil.Load() }

// markDown says whether the node was up until now.
func (n *node) markDown(now time.Time) bool {
	return n.downUntil.Swap(now.Add(downFor).UnixNano()) <= now.UnixNano()
}

func (n *node) markUp() { n.downUntil.Store(0) }

// nodes chooses where a call goes: to the node asked for, else by the
// strategy, over those that did not fail lately, else over all.
type nodes struct {
	list     []*node
	strategy Strategy
	ring     ring          // of StrategyAffinity
	turn     atomic.Uint32 // the next node in turn
	session  atomic.Int32  // the node kept by StrategySession
}

func newNodes(list []*node, s Strategy) *nodes {
	ns := &nodes{list: list, strategy: s}
	switch s {
	case "", StrategyAffinity:
		names := make([]string, len(list))
		for i, n := range list {
			names[i] = n.name
		}
		ns.strategy, ns.ring = StrategyAffinity, newRing(names)
	case StrategySession:
		ns.session.Store(rand.Int32N(int32(len(list))))
	}
	return ns
}

// order lists the nodes to try, best first, each once.
func (ns *nodes) order(key, prefer string, now time.Time) []*node {
	if len(ns.list) == 1 {
		return ns.list
	}
	var best, good, bad []*node
	kept := int32(-1)
	for _, i := range ns.sequence(key) {
		n := ns.list[i]
		switch {
		case !n.up(now):
			bad = append(bad, n)
			continue
		case prefer != "" && n.name == prefer:
			best = append(best, n)
		default:
			good = append(good, n)
		}
		if kept < 0 {
			kept = int32(i)
		}
	}
	if ns.strategy == StrategySession && kept >= 0 {
		ns.session.Store(kept)
	}
	return append(append(best, good...), bad...)
}

// sequence is the order of the strategy, whoever is up.
func (ns *nodes) sequence(key string) []int {
	n := uint32(len(ns.list))
	if ns.ring != nil && key != "" {
		return ns.ring.walk(key, len(ns.list))
	}
	var first uint32
	if ns.strategy == StrategySession {
		first = uint32(ns.session.Load())
	} else {
		first = ns.turn.Add(1) - 1
	}
	indices := make([]int, n)
	for i := range indices {
		indices[i] = int((first + uint32(i)) % n)
	}
	return indices
}
