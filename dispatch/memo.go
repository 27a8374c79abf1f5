package dispatch

import (
	lru "github.com/hashicorp/golang-lru/v2"
)

// memoSize bounds what a route remembers; the oldest entry goes first.
const memoSize = 1 << 14

// memo holds the ids of messages whose riders are out, or that were delivered,
// while their ack was refused for another reason than a lost lease: they are
// only acked when they come again. A balancer that hides nodes refuses each
// such ack, and would otherwise cause a call per lease (design.md, "Old
// events"). It is a help, not a promise: it dies with the process.
type memo struct {
	ids *lru.Cache[string, struct{}]
}

func newMemo() *memo {
	ids, _ := lru.New[string, struct{}](memoSize) // fails only for a size below 1
	return &memo{ids: ids}
}

func (m *memo) has(messageID string) bool { return m.ids.Len() > 0 && m.ids.Contains(messageID) }

func (m *memo) add(entries []entry) {
	for i := range entries {
		m.ids.Add(entries[i].messageID, struct{}{})
	}
}

// forget is called once a message is known to be acked: an operator's seek
// must not be swallowed.
func (m *memo) forget(messageID string) {
	if m.ids.Len() > 0 {
		m.ids.Remove(messageID)
	}
}
