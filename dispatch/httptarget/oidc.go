package httptarget

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	// fileEvery is how often a token file is read again: tokens that a
	// platform puts there (a Kubernetes service account's) change at any time.
	fileEvery = time.Second
	// opaqueLife is how long a command's token is used that does not say when
	// it ends.
	opaqueLife = 5 * time.Minute
)

// tokenFile fetches the token that a file holds.
type tokenFile struct {
	path string
	now  func() time.Time
}

func (f tokenFile) fetch(context.Context) (token, error) {
	data, err := readFile(f.path)
	if err != nil {
		return token{}, fmt.Errorf("auth.token_file: %w", err)
	}
	value := strings.TrimSpace(string(data))
	got := token{value: value, renew: f.now().Add(fileEvery), ends: jwtEnd(value)}
	if !got.usable(f.now()) {
		return token{}, fmt.Errorf("auth.token_file: the token in it ended at %s", got.ends.UTC().Format(time.RFC3339))
	}
	return got, nil
}

// tokenCommand fetches the token that a command prints. It runs without a
// shell, without input and without our own settings in its environment; of
// what it prints to its standard error nothing is kept: that may be a secret.
type tokenCommand struct {
	argv []string
	now  func() time.Time
}

func (c tokenCommand) fetch(ctx context.Context) (token, error) {
	value, err := c.run(ctx)
	if err != nil {
		return token{}, fmt.Errorf("auth.command %s: %w", c.argv[0], err)
	}
	ends := jwtEnd(value)
	if ends.IsZero() {
		return lasting(value, opaqueLife, c.now()), nil
	}
	return lasting(value, ends.Sub(c.now()), c.now()), nil
}

func (c tokenCommand) run(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	var out limitedBuffer
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...) //nolint:gosec // the operator names the command
	cmd.Stdout, cmd.Stderr = &out, io.Discard
	cmd.Env = foreignEnvironment(os.Environ())
	cmd.WaitDelay = time.Second // a child of it may keep the pipe open
	err := cmd.Run()
	switch {
	case out.over:
		return "", errors.New("printed too much")
	case ctx.Err() != nil:
		return "", errors.New("did not end in time")
	case err != nil:
		return "", err
	}
	return strings.TrimSpace(string(out.b)), nil
}

// foreignEnvironment is env without our own variables: some are secrets that
// are no business of a command.
func foreignEnvironment(env []string) []string {
	out := make([]string, 0, len(env))
	for _, pair := range env {
		if !strings.HasPrefix(pair, "QUEENBRIDGE_") {
			out = append(out, pair)
		}
	}
	return out
}

var errOutput = errors.New("more output than a token has")

// limitedBuffer takes maxToken bytes and fails then, which ends the command.
type limitedBuffer struct {
	b    []byte
	over bool
}

// Write implements io.Writer.
func (l *limitedBuffer) Write(p []byte) (int, error) {
	if len(l.b)+len(p) > maxToken {
		l.over = true
		return 0, errOutput
	}
	l.b = append(l.b, p...)
	return len(p), nil
}

// jwtEnd is the exp of a JWT (RFC 7519 §4.1.4), unverified: only the function
// can judge it. Zero: it says nothing.
func jwtEnd(value string) time.Time {
	parts := strings.Split(value, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Exp float64 `json:"exp"`
	}
	const last = 253402300799 // the end of the year 9999
	if json.Unmarshal(payload, &claims) != nil || claims.Exp <= 0 || claims.Exp > last {
		return time.Time{}
	}
	return time.Unix(int64(claims.Exp), 0)
}
