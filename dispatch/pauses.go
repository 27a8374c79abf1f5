package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// ByBridge is the By of what the bridge paused itself: a target that answered
// 410, one that failed for too long, a route with on_exhausted: pause.
const ByBridge = "bridge"

// Bounds of what is kept of a pause, in bytes.
const (
	maxReason = 512
	maxBy     = 128
)

// The kinds of what can be paused.
const (
	kindRoute  = "route"
	kindTarget = "target"
)

// PauseInfo says why something is paused. It is shown to operators: no secret
// belongs in it. What is too long is cut.
type PauseInfo struct {
	Reason string `json:"reason"` // at most 512 bytes
	By     string `json:"by"`     // who; at most 128 bytes
	// Since is set when it is stored.
	Since time.Time `json:"since"`
}

// KV is what Pauses needs of Queen; *queen.Client is one.
type KV interface {
	KV(ctx context.Context, ops []queen.KVOp) ([]queen.KVResult, error)
}

// Pauses are the routes and targets that are paused, in Queen's KV: they
// survive every process, and every dispatcher follows them within about 3
// seconds. It keeps nothing itself and works without a dispatcher. Safe for
// concurrent use.
//
// A `paused: true` of the configuration is not among them; either stops a
// route.
type Pauses struct{ kv KV }

// NewPauses are the pauses in the KV of a Queen.
func NewPauses(kv KV) Pauses { return Pauses{kv: kv} }

// PauseRoute pauses a route, or changes why it is: it takes no events and no
// retries; calls under way finish, what was taken and not called is given
// back. Whether there is such a route is not checked.
func (p Pauses) PauseRoute(ctx context.Context, name string, info PauseInfo) error {
	return p.pause(ctx, kindRoute, name, info)
}

// ResumeRoute ends PauseRoute; it is no error where the route was not paused.
func (p Pauses) ResumeRoute(ctx context.Context, name string) error {
	return p.resume(ctx, kindRoute, name)
}

// PauseTarget pauses a target: no route calls it, nor takes events for it.
func (p Pauses) PauseTarget(ctx context.Context, name string, info PauseInfo) error {
	return p.pause(ctx, kindTarget, name, info)
}

// ResumeTarget ends PauseTarget, also one by the bridge itself (410); it is no
// error where the target was not paused.
func (p Pauses) ResumeTarget(ctx context.Context, name string) error {
	return p.resume(ctx, kindTarget, name)
}

func (p Pauses) pause(ctx context.Context, kind, name string, info PauseInfo) error {
	_, err := p.put(ctx, "put", kind, name, info)
	return err
}

// put stores a pause; with putIfAbsent one that stands there already stays.
func (p Pauses) put(ctx context.Context, op, kind, name string, info PauseInfo) (PauseInfo, error) {
	info = info.stored()
	value, _ := json.Marshal(info) // two strings and a time
	_, err := p.kv.KV(ctx, []queen.KVOp{{Op: op, Namespace: bridge.KVNamespace, Key: bridge.PauseKey(kind, name), Value: value}})
	if err != nil {
		return info, fmt.Errorf("pause %s %s: %w", kind, name, err)
	}
	return info, nil
}

func (p Pauses) resume(ctx context.Context, kind, name string) error {
	_, err := p.kv.KV(ctx, []queen.KVOp{{Op: "delete", Namespace: bridge.KVNamespace, Key: bridge.PauseKey(kind, name)}})
	if err != nil {
		return fmt.Errorf("resume %s %s: %w", kind, name, err)
	}
	return nil
}

// stored is what is written: Queen refuses control characters in values
// (measured 1.3.0: NUL is a 500).
func (i PauseInfo) stored() PauseInfo {
	i.Reason, i.By = cleaned(i.Reason, maxReason), cleaned(i.By, maxBy)
	if i.Since.IsZero() {
		i.Since = time.Now()
	}
	i.Since = i.Since.UTC().Truncate(time.Millisecond)
	return i
}

// String tells an operator who paused it and why.
func (i PauseInfo) String() string {
	text := "since " + i.Since.UTC().Format(time.RFC3339)
	if i.By != "" {
		text = "by " + i.By + " " + text
	}
	if i.Reason != "" {
		text += ": " + i.Reason
	}
	return text
}

func cleaned(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}

// Paused is everything that is paused, by name.
type Paused struct {
	Routes, Targets map[string]PauseInfo
}

// maxPausePages bounds a list: 1000 keys each.
const maxPausePages = 100

// List reads all that is paused.
func (p Pauses) List(ctx context.Context) (Paused, error) {
	all := Paused{Routes: map[string]PauseInfo{}, Targets: map[string]PauseInfo{}}
	op := queen.KVOp{Op: "getPrefix", Namespace: bridge.KVNamespace, Prefix: bridge.PausePrefix, Limit: 1000}
	for range maxPausePages {
		results, err := p.kv.KV(ctx, []queen.KVOp{op})
		if err != nil {
			return all, fmt.Errorf("read what is paused: %w", err)
		}
		for _, row := range results[0].Rows {
			all.add(row)
		}
		if !results[0].Truncated || results[0].NextAfter == "" {
			return all, nil
		}
		op.After = results[0].NextAfter
	}
	return all, fmt.Errorf("read what is paused: more than %d pages", maxPausePages)
}

// add takes one row. A value that cannot be read pauses all the same.
func (p *Paused) add(row queen.KVRow) {
	kind, name, ok := bridge.ParsePauseKey(row.Key)
	if !ok {
		return
	}
	var info PauseInfo
	if json.Unmarshal(row.Value, &info) != nil {
		info = PauseInfo{Reason: "the stored reason cannot be read"}
	}
	switch kind {
	case kindRoute:
		p.Routes[name] = info
	case kindTarget:
		p.Targets[name] = info
	}
}
