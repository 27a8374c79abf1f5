package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// pausePoll is how often what others paused is looked for, at most.
const pausePoll = 2500 * time.Millisecond

// ErrUnknown matches (errors.Is) the error of a name that is no route or
// target of the dispatcher.
var ErrUnknown = errors.New("there is no such resource")

// ErrPausedByConfiguration matches (errors.Is) the error of resuming what the
// configuration pauses: it stays paused until that changes.
var ErrPausedByConfiguration = errors.New("the configuration says paused: true")

// pauseKey is what is paused.
type pauseKey struct{ kind, name string }

// paused is what a dispatcher knows of the pauses in Queen.
type paused struct {
	kv      Pauses
	writing sync.Mutex // one change at a time: held over the call and what follows

	// Guarded by the dispatcher's mu.
	all     map[pauseKey]pauseEntry
	changes int     // of our own; a read that began before one is stale
	trouble trouble // why it is not known how things stand now
}

type pauseEntry struct {
	PauseInfo
	// pending: known to this process alone, its write is under way.
	pending bool
}

// PauseRoute is Pauses.PauseRoute, and holds for this process at once. Names
// that are no route are refused with ErrUnknown.
func (d *Dispatcher) PauseRoute(ctx context.Context, name string, info PauseInfo) error {
	return d.pause(ctx, pauseKey{kindRoute, name}, info)
}

// PauseTarget is Pauses.PauseTarget, and holds for this process at once. Names
// that are no target are refused with ErrUnknown.
func (d *Dispatcher) PauseTarget(ctx context.Context, name string, info PauseInfo) error {
	return d.pause(ctx, pauseKey{kindTarget, name}, info)
}

// ResumeRoute is Pauses.ResumeRoute, and holds for this process at once. The
// error is ErrPausedByConfiguration where that alone is left.
func (d *Dispatcher) ResumeRoute(ctx context.Context, name string) error {
	return d.resume(ctx, pauseKey{kindRoute, name})
}

// ResumeTarget is Pauses.ResumeTarget, and holds for this process at once. The
// error is ErrPausedByConfiguration where that alone is left.
func (d *Dispatcher) ResumeTarget(ctx context.Context, name string) error {
	return d.resume(ctx, pauseKey{kindTarget, name})
}

func (d *Dispatcher) pause(ctx context.Context, key pauseKey, info PauseInfo) error {
	if _, err := d.configured(key); err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	d.paused.writing.Lock()
	defer d.paused.writing.Unlock()
	info, err := d.paused.kv.put(ctx, "put", key.kind, key.name, info)
	if err != nil {
		return err
	}
	d.setPause(key, &pauseEntry{PauseInfo: info})
	return nil
}

func (d *Dispatcher) resume(ctx context.Context, key pauseKey) error {
	stays, err := d.configured(key)
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	d.paused.writing.Lock()
	defer d.paused.writing.Unlock()
	if err := d.paused.kv.resume(ctx, key.kind, key.name); err != nil {
		return err
	}
	d.setPause(key, nil)
	if stays {
		return fmt.Errorf("resume %s %s: %w", key.kind, key.name, ErrPausedByConfiguration)
	}
	return nil
}

// configured says whether the configuration pauses a resource.
func (d *Dispatcher) configured(key pauseKey) (pauses bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.slots[key.name]; key.kind == kindRoute && s != nil && s.wanted != nil {
		return s.wanted.cfg.Paused, nil
	}
	if t := d.targets[key.name]; key.kind == kindTarget && t != nil {
		return t.config().Paused, nil
	}
	return false, fmt.Errorf("%s %q: %w", key.kind, key.name, ErrUnknown)
}

// pauseItself pauses a route or target on the bridge's own word. It holds for
// this process at once; the others learn of it as soon as Queen takes it.
func (d *Dispatcher) pauseItself(key pauseKey, reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, already := d.paused.all[key]; already {
		return
	}
	entry := pauseEntry{PauseInfo{Reason: reason, By: ByBridge}.stored(), true}
	d.log.Error(key.kind+" paused by the bridge, until it is resumed",
		slog.String(key.kind, key.name), slog.String("reason", entry.Reason))
	d.paused.all[key] = entry
	d.applyPause(key)
	d.spawn(func() { d.storePause(key, entry) })
}

// storePause writes a pause of our own until Queen took it, or somebody ended
// it.
func (d *Dispatcher) storePause(key pauseKey, entry pauseEntry) {
	for pause := (backoff{}); ; {
		done, err := d.storePauseOnce(key, entry)
		if done {
			return
		}
		d.log.LogAttrs(d.settling, pause.level(), "pause not stored in queen, only this process knows of it; trying again",
			slog.String(key.kind, key.name), slog.Any(keyError, err))
		// A stop does not wait for it: who calls the target next pauses it again.
		if sleep(d.taking, pause.next(queen.RetryAfter(err))) != nil {
			return
		}
	}
}

func (d *Dispatcher) storePauseOnce(key pauseKey, entry pauseEntry) (done bool, err error) {
	d.paused.writing.Lock()
	defer d.paused.writing.Unlock()
	d.mu.Lock()
	now, still := d.paused.all[key]
	d.mu.Unlock()
	if !still || !now.pending {
		return true, nil
	}
	if _, err := d.paused.kv.put(d.settling, "putIfAbsent", key.kind, key.name, entry.PauseInfo); err != nil {
		return false, err
	}
	d.setPause(key, &pauseEntry{PauseInfo: entry.PauseInfo})
	return true, nil
}

// setPause notes a change of our own, stored in Queen; nil: resumed.
func (d *Dispatcher) setPause(key pauseKey, entry *pauseEntry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, was := d.paused.all[key]
	d.paused.changes++
	if entry == nil {
		delete(d.paused.all, key)
	} else {
		d.paused.all[key] = *entry
	}
	if was != (entry != nil) {
		d.sayPause(key, entry != nil)
	}
	d.applyPause(key)
}

func (d *Dispatcher) sayPause(key pauseKey, on bool) {
	if on {
		info := d.paused.all[key]
		d.log.Info(key.kind+" paused", slog.String(key.kind, key.name), slog.String("by", info.By), slog.String("reason", info.Reason))
		return
	}
	d.log.Info(key.kind+" resumed", slog.String(key.kind, key.name))
}

// applyPause lets a resource follow its pauses; mu is held.
func (d *Dispatcher) applyPause(key pauseKey) {
	entry, on := d.paused.all[key]
	switch key.kind {
	case kindRoute:
		if s := d.slots[key.name]; s != nil && s.running != nil {
			s.running.adjust()
		}
	case kindTarget:
		if t := d.targets[key.name]; t != nil {
			d.limiter.pause(t.share, entry.info(on))
		}
	}
	if d.known(key) && on {
		d.m.paused.WithLabelValues(key.kind, key.name).Set(1)
	} else {
		d.m.paused.DeleteLabelValues(key.kind, key.name)
	}
}

// info is the pause for those who only read it; nil where it is none.
func (e pauseEntry) info(on bool) *PauseInfo {
	if !on {
		return nil
	}
	return &e.PauseInfo
}

// known says that a resource is one of this dispatcher; mu is held.
func (d *Dispatcher) known(key pauseKey) bool {
	if key.kind == kindRoute {
		s := d.slots[key.name]
		return s != nil && s.wanted != nil
	}
	return d.targets[key.name] != nil
}

// isPaused tells of a stored pause; mu is held.
func (d *Dispatcher) isPaused(kind, name string) bool {
	_, on := d.paused.all[pauseKey{kind, name}]
	return on
}

// followPauses reads what is paused until ctx ends. The routes begin once it
// is known: a paused one must not be taken for running because a process
// began.
func (d *Dispatcher) followPauses(ctx context.Context) {
	for pause, said := (backoff{}), false; ctx.Err() == nil; {
		err := d.readPauses(ctx)
		wait := jitter(pausePoll)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !said:
			said = true
			d.log.LogAttrs(ctx, slog.LevelWarn, "queen does not tell what is paused; what was known last stays", slog.Any(keyError, err))
		case err == nil && said:
			said = false
			d.log.Info("queen tells again what is paused")
		}
		if err != nil {
			wait = max(wait, pause.next(queen.RetryAfter(err)))
		} else {
			pause = backoff{}
		}
		if sleep(ctx, wait) != nil {
			return
		}
	}
}

// readPauses takes over what others changed.
func (d *Dispatcher) readPauses(ctx context.Context) error {
	d.mu.Lock()
	asked := d.paused.changes
	d.mu.Unlock()
	stored, err := d.paused.kv.List(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		if d.paused.trouble.err == nil {
			d.paused.trouble.since = time.Now()
		}
		d.paused.trouble.err = err
		return err
	}
	d.paused.trouble = trouble{}
	if asked == d.paused.changes {
		d.takePauses(stored)
	}
	d.letBegin()
	return nil
}

// takePauses makes the stored pauses ours; those being written stay. mu is
// held.
func (d *Dispatcher) takePauses(stored Paused) {
	before, next := d.paused.all, map[pauseKey]pauseEntry{}
	for name, info := range stored.Routes {
		next[pauseKey{kindRoute, name}] = pauseEntry{PauseInfo: info}
	}
	for name, info := range stored.Targets {
		next[pauseKey{kindTarget, name}] = pauseEntry{PauseInfo: info}
	}
	for key, entry := range before {
		if _, on := next[key]; !on && entry.pending {
			next[key] = entry
		}
	}
	d.paused.all = next
	d.applyChanged(before, next)
}

// applyChanged applies what differs; mu is held.
func (d *Dispatcher) applyChanged(before, next map[pauseKey]pauseEntry) {
	for key := range next {
		if _, was := before[key]; !was {
			if d.known(key) {
				d.sayPause(key, true)
			}
			d.applyPause(key)
		}
	}
	for key := range before {
		if _, on := next[key]; !on {
			if d.known(key) {
				d.sayPause(key, false)
			}
			d.applyPause(key)
		}
	}
}
