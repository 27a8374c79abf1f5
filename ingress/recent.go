package ingress

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

const (
	// recentIDs bounds the acknowledged ids a source remembers.
	recentIDs = 4096
	// recentFor bounds how long: long enough for a burst of resends, and
	// shorter than any dedup window, so Queen stays the one that decides.
	recentFor = 10 * time.Minute
)

// recent remembers what was acknowledged a moment ago, so that a burst of
// resends does not reach Queen. Only what Queen stores for sure enters it, and
// only proven requests ask it. Safe for concurrent use.
type recent struct {
	ids *lru.Cache[recentID, time.Time]
}

// recentID is an id in its partition: Queen, too, dedups per partition.
type recentID struct{ partition, id string }

func newRecent() (*recent, error) {
	ids, err := lru.New[recentID, time.Time](recentIDs)
	return &recent{ids: ids}, err
}

// knows says whether every item of a bundle was acknowledged a moment ago.
func (r *recent) knows(g *queen.Bundle, now time.Time) bool {
	for i := range g.Len() {
		item := g.Item(i)
		at, ok := r.ids.Get(recentID{item.Partition, item.TransactionID})
		if !ok || now.Sub(at) > recentFor {
			return false
		}
	}
	return g.Len() > 0
}

// add remembers the items of a stored bundle.
func (r *recent) add(g *queen.Bundle, now time.Time) {
	for i := range g.Len() {
		item := g.Item(i)
		r.ids.Add(recentID{item.Partition, item.TransactionID}, now)
	}
}
