package queen

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
)

// Strategy chooses among several nodes. Whatever it says, the calls about a
// lease go to the node that granted it, and a node that failed is passed over
// for 5 seconds.
type Strategy string

// The strategies (queen-contract.md §12).
const (
	// StrategyAffinity, the default, keeps each pop (queue, partition, group)
	// at one node by a consistent hash; all other calls go in turn.
	StrategyAffinity Strategy = "affinity"
	// StrategyRoundRobin goes in turn.
	StrategyRoundRobin Strategy = "round_robin"
	// StrategySession chooses one node by chance and keeps it until it fails.
	StrategySession Strategy = "session"
)

func (s Strategy) check() error {
	switch s {
	case "", StrategyAffinity, StrategyRoundRobin, StrategySession:
		return nil
	}
	return fmt.Errorf("queen client: strategy %q is none: use %s, %s or %s", string(s), StrategyAffinity, StrategyRoundRobin, StrategySession)
}

// virtualNodes is how often each node stands in the ring: the official
// clients' number.
const virtualNodes = 128

// ring is the consistent hash of the official clients, so that theirs and ours
// ask the same node for the same pop. A node that leaves moves only its own
// keys.
type ring []ringPoint

type ringPoint struct {
	hash uint32
	node int
}

func newRing(names []string) ring {
	r := make(ring, 0, len(names)*virtualNodes)
	for node, name := range names {
		for i := range virtualNodes {
			r = append(r, ringPoint{hash: fnv32(fmt.Sprintf("%s-%d", name, i)), node: node})
		}
	}
	slices.SortStableFunc(r, func(a, b ringPoint) int { return cmp.Compare(a.hash, b.hash) })
	return r
}

// walk lists n nodes in the order in which they stand in for each other under
// a key.
func (r ring) walk(key string, n int) []int {
	at, _ := slices.BinarySearchFunc(r, fnv32(key), func(p ringPoint, hash uint32) int { return cmp.Compare(p.hash, hash) })
	found := make([]int, 0, n)
	for i := 0; i < len(r) && len(found) < n; i++ {
		if p := r[(at+i)%len(r)]; !slices.Contains(found, p.node) {
			found = append(found, p.node)
		}
	}
	return found
}

// fnv32 is FNV-1a, 32 bits.
func fnv32(s string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return h.Sum32()
}

// affinity is the key of a pop, as the official clients make it.
func (r *PopRequest) affinity() string {
	if r.Queue == "" {
		return orAny(r.Namespace) + ":" + orAny(r.Task) + ":" + r.Group
	}
	return r.Queue + ":" + orAny(r.Partition) + ":" + r.Group
}

func orAny(s string) string {
	if s == "" {
		return "*"
	}
	return s
}
