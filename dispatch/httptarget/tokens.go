package httptarget

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

const (
	// fetchTimeout bounds one fetch of a token.
	fetchTimeout = 10 * time.Second
	// failurePause is how long a token that is still good is used after its
	// renewal failed, before the next try; and the least time between two
	// renewals because of a 401.
	failurePause = 10 * time.Second
	// maxToken bounds a bearer token, in bytes: more fits in no header.
	maxToken = 16 << 10
)

// token is a bearer token.
type token struct {
	value string
	// renew is when to get the next one; this one may still be used.
	renew time.Time
	// ends is when it must not be used any more. Zero: unknown.
	ends time.Time
}

// credentialError is why there is no credential for a call. Its text holds
// neither secret nor token.
type credentialError struct {
	class bridge.FailureClass
	err   error
}

// Error says what is missing and why.
func (e *credentialError) Error() string { return "get token for auth: " + e.err.Error() }

// Unwrap is the cause.
func (e *credentialError) Unwrap() error { return e.err }

// tokens holds a target's bearer token: fetched when a call first needs it, by
// one call at a time, and renewed before it ends.
type tokens struct {
	fetch func(ctx context.Context) (token, error)
	now   func() time.Time

	held atomic.Pointer[token] // nil: none yet
	turn chan struct{}         // of one: who is in it fetches, and owns the rest

	failures atomic.Int64 // fetches that failed, ever
	failed   error        // of the last one that failed
	forced   time.Time    // when a 401 last made us fetch
}

func newTokens(now func() time.Time, fetch func(context.Context) (token, error)) *tokens {
	return &tokens{fetch: fetch, now: now, turn: make(chan struct{}, 1)}
}

// token is a token that may be used now.
func (t *tokens) token(ctx context.Context) (*token, error) {
	held := t.held.Load()
	if held != nil && t.now().Before(held.renew) {
		return held, nil
	}
	if held != nil && held.usable(t.now()) {
		return t.early(ctx, held), nil
	}
	return t.next(ctx, held)
}

// early renews a token that is still good, unless another call does so. It
// leaves half of the attempt's time: the token's server may hang.
func (t *tokens) early(ctx context.Context, held *token) *token {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	default:
		return held
	}
	if newer := t.held.Load(); newer != held {
		return newer
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	if next, err := t.get(ctx); err == nil {
		return next
	}
	later := *held
	later.renew = t.now().Add(failurePause)
	t.held.Store(&later)
	return &later
}

// next fetches the token after old. Calls that wait for another one's fetch
// share what comes of it.
func (t *tokens) next(ctx context.Context, old *token) (*token, error) {
	before := t.failures.Load()
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if newer := t.held.Load(); newer != old {
		return newer, nil
	}
	if t.failures.Load() != before {
		return nil, t.failed
	}
	return t.get(ctx)
}

// get fetches; the turn is taken. What ends with the caller's own context is
// not the others' failure.
func (t *tokens) get(ctx context.Context) (*token, error) {
	within, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	next, err := t.fetch(within)
	if err == nil {
		err = checkToken(next, t.now())
	}
	if err == nil {
		t.held.Store(&next)
		return &next, nil
	}
	if ctx.Err() == nil {
		t.failed = err
		t.failures.Add(1)
	}
	return nil, err
}

// replace is the token after one that was answered 401, or nil where there is
// none that promises more: the answer stands then. Calls refused at once share
// one fetch, and a function that refuses every token makes one fetch per
// failurePause, not one per attempt.
func (t *tokens) replace(ctx context.Context, refused *token) *token {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return nil
	}
	held := t.held.Load()
	if held.value != refused.value {
		return held
	}
	now := t.now()
	if !t.forced.IsZero() && now.Sub(t.forced) < failurePause {
		return nil
	}
	t.forced = now
	next, err := t.get(ctx)
	if err != nil || next.value == refused.value {
		return nil
	}
	return next
}

func (t *token) usable(now time.Time) bool { return t.ends.IsZero() || now.Before(t.ends) }

// checkToken refuses what no request can carry.
func checkToken(t token, now time.Time) error {
	switch {
	case t.value == "":
		return errors.New("the token is empty")
	case len(t.value) > maxToken:
		return errors.New("the token is too long for a header")
	case !validValue(t.value):
		return errors.New("the token holds characters that no header can carry")
	case !t.usable(now):
		return errors.New("the token has ended already")
	}
	return nil
}

// lasting is a token that is good for life from now. It is renewed when a
// tenth to a fifth of that is left, five minutes at most: early, and not all
// processes at the same time.
func lasting(value string, life time.Duration, now time.Time) token {
	early := min(life/10, 150*time.Second)
	early += rand.N(max(early, 1)) //nolint:gosec // no secret
	return token{value: value, renew: now.Add(life - early), ends: now.Add(life)}
}
