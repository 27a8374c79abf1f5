package rules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// put stores a row in place of the version before (0: there must be none), and
// publishes the catalog with it. A lost race is a *raceError. writing is held.
func (s *Store) put(ctx context.Context, before int64, next row) error {
	value, err := next.encode()
	if err != nil {
		return err
	}
	key := bridge.RuleKey(next.resource())
	op := queen.KVOp{Op: "put", Namespace: bridge.KVNamespace, Key: key, Value: value, Expect: &before, Required: true}
	version, generation, err := s.commit(ctx, op, next.Write)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := maps.Clone(s.rows)
	rows[key] = stored{key: key, version: version, row: next}
	s.rows, s.generation = rows, generation
	if s.tried.write == next.Write {
		s.publishTried(next.resource(), version)
	} else {
		s.publish()
	}
	return nil
}

// publishTried hands out the catalog with which a change was checked: nothing
// else has changed since.
func (s *Store) publishTried(r bridge.Resource, version int64) {
	c := s.tried.catalog
	e := c.entries[r]
	e.Version = version
	c.entries[r] = e
	s.handOut(c)
}

// remove deletes the row of that version, and publishes the catalog without it.
func (s *Store) remove(ctx context.Context, one stored) error {
	op := queen.KVOp{Op: "delete", Namespace: bridge.KVNamespace, Key: one.key, Expect: &one.version, Required: true}
	_, generation, err := s.commit(ctx, op, "")
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := maps.Clone(s.rows)
	delete(rows, one.key)
	s.rows, s.generation = rows, generation
	s.publish()
	return nil
}

// commit makes a change together with that of the generation, all or nothing.
// Without an answer the same is sent again: it then either does it, or fails on
// what it did itself, which the row's write mark proves.
func (s *Store) commit(ctx context.Context, op queen.KVOp, write string) (version, generation int64, err error) {
	s.mu.Lock()
	expected := s.generation
	s.mu.Unlock()
	mark, _ := json.Marshal(map[string]string{"write": newSealedID()}) // a map of texts encodes
	ops := []queen.KVOp{op, {Op: "put", Namespace: bridge.KVNamespace, Key: bridge.RuleGenerationKey,
		Value: mark, Expect: &expected, Required: true}}
	uncertain := false
	for try := 0; ; try++ {
		results, err := s.queen.KV(ctx, ops)
		if err == nil {
			return results[0].Version, results[1].Version, nil
		}
		refused, isRefusal := errors.AsType[*queen.RollbackError](err)
		switch {
		case isRefusal && refused.Reason == queen.RollbackKVPrecondition && uncertain:
			return s.confirm(ctx, op, write)
		case isRefusal && refused.Reason == queen.RollbackKVPrecondition:
			return 0, 0, &raceError{resource: refused.FailedIndex == 0}
		case !queen.Uncertain(err) && !queen.Temporary(err) || try >= 3:
			return 0, 0, fmt.Errorf("store %s: %w", op.Key, err)
		}
		uncertain = uncertain || queen.Uncertain(err)
		if err := pause(ctx, 100*time.Millisecond<<try); err != nil {
			return 0, 0, fmt.Errorf("store %s: %w", op.Key, err)
		}
	}
}

// confirm reads whether a change whose answer was lost was made.
func (s *Store) confirm(ctx context.Context, op queen.KVOp, write string) (version, generation int64, err error) {
	generation, err = s.readGeneration(ctx)
	if err != nil {
		return 0, 0, err
	}
	results, err := s.queen.KV(ctx, []queen.KVOp{{Op: "get", Namespace: bridge.KVNamespace, Key: op.Key}})
	if err != nil {
		return 0, 0, fmt.Errorf("read %s: %w", op.Key, err)
	}
	r := results[0]
	if op.Op == "delete" && !r.Found {
		return 0, generation, nil
	}
	if now, err := decodeRow(op.Key, r.Value); op.Op == "put" && r.Found && err == nil && now.Write == write {
		return r.Version, generation, nil
	}
	return 0, 0, &raceError{resource: true}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
