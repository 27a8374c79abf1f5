package queen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// TokenSource returns the bearer token to send, "" for none. It is asked
// before every request and should answer from memory. refused is "" or the
// token of a request that was just answered 401: where the answer then
// differs, the request is sent once more. It must be safe for concurrent use
// and honour ctx; an error ends the call before anything is sent.
type TokenSource func(ctx context.Context, refused string) (string, error)

// credentials is where the token comes from; source is nil where it never
// changes.
type credentials struct {
	static string
	source TokenSource
}

func newCredentials(cfg *Config, log *slog.Logger) (credentials, error) {
	given := 0
	for _, is := range [...]bool{cfg.Token != "", cfg.TokenFile != "", cfg.TokenSource != nil} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return credentials{}, errors.New("queen client: Token, TokenFile and TokenSource exclude each other")
	case cfg.TokenFile != "":
		f, err := newTokenFile(cfg.TokenFile, log)
		if err != nil {
			return credentials{}, fmt.Errorf("queen client: %w", err)
		}
		return credentials{source: f.token}, nil
	}
	if err := checkToken(cfg.Token); err != nil {
		return credentials{}, fmt.Errorf("queen client: %w", err)
	}
	return credentials{static: cfg.Token, source: cfg.TokenSource}, nil
}

// token is the token to send now.
func (c *credentials) token(ctx context.Context, refused string) (string, error) {
	if c.source == nil {
		return c.static, nil
	}
	token, err := c.source(ctx, refused)
	if err == nil {
		err = checkToken(token)
	}
	if err != nil {
		return "", fmt.Errorf("bearer token: %w", err)
	}
	return token, nil
}

// renew replaces a token that was refused by another one, if there is one.
func (c *credentials) renew(ctx context.Context, token *string) bool {
	fresh, err := c.token(ctx, *token)
	if err != nil || fresh == *token {
		return false
	}
	*token = fresh
	return true
}

// checkToken refuses what would break out of the header or never match; the
// error does not show it.
func checkToken(token string) error {
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("the bearer token holds a space or a character that is no printable ASCII")
	}
	return nil
}

const (
	// tokenCheck is how often a token file is looked at, at most.
	tokenCheck = time.Second
	// maxTokenFile bounds what is read of it.
	maxTokenFile = 64 << 10
)

// tokenFile is a token that is read again when its file changes. A file that
// cannot be read keeps the last token: it may just be being replaced.
type tokenFile struct {
	path string
	log  *slog.Logger

	mu      sync.Mutex
	current string
	seen    os.FileInfo
	checked time.Time
	failed  bool // the last look
}

func newTokenFile(path string, log *slog.Logger) (*tokenFile, error) {
	f := &tokenFile{path: path, log: log}
	if err := f.read(); err != nil {
		return nil, err
	}
	f.checked = time.Now()
	return f, nil
}

// token is a TokenSource.
func (f *tokenFile) token(ctx context.Context, refused string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	must := refused != "" && refused == f.current
	if !must && now.Sub(f.checked) < tokenCheck {
		return f.current, nil
	}
	f.checked = now
	var err error
	if must || f.changed() {
		err = f.read()
	}
	if err != nil && !f.failed {
		f.log.LogAttrs(ctx, slog.LevelWarn, "queen token not read again, the last one stays", slog.Any("error", err))
	}
	f.failed = err != nil
	return f.current, nil
}

// changed says that the file is not the one that was read.
func (f *tokenFile) changed() bool {
	info, err := os.Stat(f.path)
	return err != nil || !os.SameFile(info, f.seen) || info.Size() != f.seen.Size() || !info.ModTime().Equal(f.seen.ModTime())
}

func (f *tokenFile) read() error {
	file, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("read token file: %w", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("read token file: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxTokenFile+1))
	switch {
	case err != nil:
		return fmt.Errorf("read token file: %w", err)
	case len(text) > maxTokenFile:
		return fmt.Errorf("read token file %s: larger than %d bytes", f.path, maxTokenFile)
	}
	token := string(bytes.TrimSpace(text))
	if token == "" {
		return fmt.Errorf("read token file %s: it is empty", f.path)
	}
	if err := checkToken(token); err != nil {
		return fmt.Errorf("read token file %s: %w", f.path, err)
	}
	f.current, f.seen = token, info
	return nil
}
