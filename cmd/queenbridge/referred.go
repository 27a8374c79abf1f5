package main

import (
	"slices"
	"sync"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/configfile"
	"github.com/queenbridge/queenbridge/bridge/rules"
)

// referredFiles knows the files that stored rules refer to, which change like
// those of the configuration file.
type referredFiles struct {
	dir     string        // of relative ones
	changed chan struct{} // there are others

	mu  sync.Mutex
	now []string
}

func newReferredFiles(dir string) *referredFiles {
	return &referredFiles{dir: dir, changed: make(chan struct{}, 1)}
}

// follow looks at one state of the catalog; at what is not in use, too: its file
// may come.
func (r *referredFiles) follow(c *rules.Catalog) {
	var next []string
	for _, kind := range bridge.Kinds() {
		for _, e := range c.Entries(kind) {
			if !e.File {
				next = append(next, configfile.ReferredFiles(r.dir, e.Document)...)
			}
		}
	}
	slices.Sort(next)
	next = slices.Compact(next)
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Equal(next, r.now) {
		return
	}
	r.now = next
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *referredFiles) files() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.now)
}
