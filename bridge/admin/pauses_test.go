package admin_test

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
)

// pauses keep in memory what the real ones keep in Queen: package admin may not
// know the dispatcher's.
type pauses struct {
	mu  sync.Mutex
	all map[bridge.Resource]adminapi.Pause
}

func newPauses() *pauses { return &pauses{all: map[bridge.Resource]adminapi.Pause{}} }

func (p *pauses) Pause(_ context.Context, r bridge.Resource, why adminapi.Pause) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	why.Since = time.Now()
	p.all[r] = why
	return nil
}

func (p *pauses) Resume(_ context.Context, r bridge.Resource) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, r)
	return nil
}

func (p *pauses) Paused(context.Context) (map[bridge.Resource]adminapi.Pause, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.all), nil
}

var someSchemes = []adminapi.Scheme{{Name: "github", Verified: true, Methods: []string{"POST"}, Handshakes: []string{}}}
