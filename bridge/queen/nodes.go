package queen

import (
	"encoding/base64"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// downFor is how long a node that failed is passed over (the official
// clients' number: queen-contract.md §12).
const downFor = 5 * time.Second

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

// nodes chooses where a call goes: to the node asked for, else in turn, over
// those that did not fail lately, else in turn over all.
type nodes struct {
	list []*node
	turn atomic.Uint32
}

// order lists the nodes to try, best first, each once.
func (ns *nodes) order(prefer string, now time.Time) []*node {
	if len(ns.list) == 1 {
		return ns.list
	}
	first := int(ns.turn.Add(1)-1) % len(ns.list)
	var best, good, bad []*node
	for i := range ns.list {
		n := ns.list[(first+i)%len(ns.list)]
		switch {
		case !n.up(now):
			bad = append(bad, n)
		case prefer != "" && n.name == prefer:
			best = append(best, n)
		default:
			good = append(good, n)
		}
	}
	return append(append(best, good...), bad...)
}
