package rules

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// Bounds of what is read: a page is cut by Queen at 4 MiB, too.
const (
	rowsPerPage = 500
	rowsPerLook = 1000 // without their values; the most that Queen tells of
	maxRows     = 20_000
)

// refresh reads the stored resources and publishes what changed. writing is
// held.
func (s *Store) refresh(ctx context.Context) error {
	begun := s.now()
	generation, err := s.readGeneration(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	fresh := !s.synced.IsZero() && generation == s.generation && time.Since(s.wholeAt) < wholeEvery
	s.mu.Unlock()
	if fresh {
		s.noteRead(begun)
		return nil
	}
	rows, err := s.readRows(ctx)
	if err != nil {
		return err
	}
	s.wholeAt = time.Now()
	s.adopt(rows, generation)
	s.noteRead(begun)
	return nil
}

// look is refresh, and finds also what was changed without the generation: by a
// hand in the KV, or a restored backup.
func (s *Store) look(ctx context.Context) error {
	if err := s.refresh(ctx); err != nil {
		return err
	}
	touched, err := s.touched(ctx)
	if err != nil || !touched {
		return err
	}
	s.wholeAt = time.Time{}
	return s.refresh(ctx)
}

// touched says that other rows are stored than those that are known. More rows
// than one call tells of are left to wholeEvery.
func (s *Store) touched(ctx context.Context) (bool, error) {
	results, err := s.queen.KV(ctx, []queen.KVOp{{Op: "getPrefix", Namespace: bridge.KVNamespace,
		Prefix: bridge.RulePrefix, Limit: rowsPerLook, KeysOnly: true}})
	if err != nil {
		return false, fmt.Errorf("read which rules are stored: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if results[0].Truncated {
		return false, nil
	}
	return len(results[0].Rows) != len(s.rows) || slices.ContainsFunc(results[0].Rows, func(r queen.KVRow) bool {
		return s.rows[r.Key].version != r.Version
	}), nil
}

// readGeneration is read before the rows: what changes between the two makes
// the next change that counts on it fail, and the next look read again.
func (s *Store) readGeneration(ctx context.Context) (int64, error) {
	results, err := s.queen.KV(ctx, []queen.KVOp{{Op: "get", Namespace: bridge.KVNamespace, Key: bridge.RuleGenerationKey}})
	if err != nil {
		return 0, fmt.Errorf("read the generation of the rules: %w", err)
	}
	if !results[0].Found {
		return 0, nil
	}
	return results[0].Version, nil
}

func (s *Store) readRows(ctx context.Context) (map[string]stored, error) {
	rows := map[string]stored{}
	for after := ""; ; {
		results, err := s.queen.KV(ctx, []queen.KVOp{{Op: "getPrefix", Namespace: bridge.KVNamespace,
			Prefix: bridge.RulePrefix, After: after, Limit: rowsPerPage}})
		if err != nil {
			return nil, fmt.Errorf("read the stored rules: %w", err)
		}
		for _, r := range results[0].Rows {
			decoded, err := decodeRow(r.Key, r.Value)
			rows[r.Key] = stored{r.Key, r.Version, decoded, err}
		}
		next := results[0].NextAfter
		switch {
		case !results[0].Truncated:
			return rows, nil
		case next <= after:
			return nil, errors.New("read the stored rules: Queen's pages go round in circles")
		case len(rows) > maxRows:
			return nil, fmt.Errorf("read the stored rules: more than %d rows", maxRows)
		}
		after = next
	}
}

// adopt makes the rows that were read the present ones.
func (s *Store) adopt(rows map[string]stored, generation int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := !s.synced.IsZero() && maps.EqualFunc(rows, s.rows, func(a, b stored) bool { return a.version == b.version })
	s.rows, s.generation = rows, generation
	if s.synced.IsZero() {
		s.synced = s.now()
	}
	if !same {
		s.publish()
		return
	}
	c := *s.catalog.Load()
	c.Generation = generation
	s.catalog.Store(&c)
}
