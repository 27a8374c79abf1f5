package rules

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// Resealed is what Reseal did.
type Resealed struct {
	// Changed are the resources whose secrets were sealed anew.
	Changed []bridge.Resource
	// Current is how many resources had all their secrets under the first key.
	Current int
}

// Reseal seals every secret that was sealed under another key than the first
// one anew, so that the others can be taken away. It stops at the first secret
// that cannot be opened; what it did until then is done, and repeating it goes
// on from there.
func (s *Store) Reseal(ctx context.Context, by string) (Resealed, error) {
	if err := s.begin(ctx); err != nil {
		return Resealed{}, err
	}
	defer s.end()
	var out Resealed
	if s.keys.Empty() {
		return out, fmt.Errorf("reseal: %w", ErrNoKey)
	}
	if err := s.refresh(ctx); err != nil {
		return out, err
	}
	s.mu.Lock()
	rows := s.rows
	s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		one := rows[key]
		if one.err != nil || len(one.row.Sealed) == 0 {
			continue
		}
		changed, err := s.resealOne(ctx, one, by)
		if err != nil {
			return out, fmt.Errorf("reseal: %w", err)
		}
		if changed {
			out.Changed = append(out.Changed, one.row.resource())
		} else {
			out.Current++
		}
	}
	return out, nil
}

func (s *Store) resealOne(ctx context.Context, one stored, by string) (changed bool, err error) {
	next := one.row
	next.Sealed = maps.Clone(next.Sealed)
	for id, sealed := range one.row.Sealed {
		if sealedUnder(sealed) == s.keys.current() {
			continue
		}
		text, err := s.keys.open(next.resource(), id, sealed)
		if err != nil {
			return false, &SealedError{Resource: next.resource(), Reason: err.Error()}
		}
		if next.Sealed[id], err = s.keys.seal(next.resource(), id, text); err != nil {
			return false, err
		}
		changed = true
	}
	if !changed {
		return false, nil
	}
	next.Updated, next.By, next.Write = s.now().UTC().Truncate(time.Microsecond), by, newSealedID()
	return true, s.put(ctx, one.version, next)
}

// SealedError says that a sealed secret cannot be opened.
type SealedError struct {
	Resource bridge.Resource
	Reason   string
}

func (e *SealedError) Error() string { return "a secret of " + e.Resource.String() + " " + e.Reason }
