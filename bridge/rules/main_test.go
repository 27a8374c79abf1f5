package rules_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/bridge/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broker is an embedded broker and the way to it, which a test can cut.
type broker struct {
	*queen.Client
	away atomic.Bool
	// after is called when Queen did what was asked and before its answer
	// arrives; an error is what arrives instead.
	after func([]queen.KVOp) error
	// refused is called for each call while it is away.
	refused func()
}

var errAway = errors.New("queen is away")

func newBroker(t *testing.T) *broker {
	t.Helper()
	b, err := devbroker.Open(devbroker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := queen.New(queen.Config{URLs: []string{"http://embedded"}, Transport: b.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return &broker{Client: client}
}

func (b *broker) KV(ctx context.Context, ops []queen.KVOp) ([]queen.KVResult, error) {
	if b.away.Load() {
		if b.refused != nil {
			b.refused()
		}
		return nil, errAway
	}
	results, err := b.Client.KV(ctx, ops)
	if b.after != nil {
		if lost := b.after(ops); lost != nil {
			return nil, lost
		}
	}
	return results, err
}

// fileOf is a configuration file with these resources.
func fileOf(t *testing.T, doc string) rules.File {
	t.Helper()
	n := parse(t, doc)
	c, found := bridge.Decode(n)
	for _, p := range c.Check(found) {
		if !p.Warning {
			t.Fatalf("the file: %s", p)
		}
	}
	return rules.File{Config: c, Document: n}
}

func parse(t *testing.T, doc string) bridge.Node {
	t.Helper()
	n, err := bridge.ParseJSON([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// keyring has one key for each byte.
func keyring(t *testing.T, bytesOf ...byte) rules.Keyring {
	t.Helper()
	var keys [][]byte
	for _, b := range bytesOf {
		keys = append(keys, bytes.Repeat([]byte{b}, rules.KeySize))
	}
	k, err := rules.NewKeyring(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// environment resolves ${env:NAME}.
func environment(n *bridge.Node) {
	name, ok := strings.CutPrefix(n.Text, "${env:")
	name, closed := strings.CutSuffix(name, "}")
	value, set := os.LookupEnv(name)
	switch {
	case !ok || !closed:
		n.Err = "is no reference"
	case !set:
		n.Err = fmt.Sprintf("environment variable %s is not set", name)
	default:
		n.Reference, n.Text = n.Text, value
	}
}

func newStore(t *testing.T, q rules.Queen, change func(*rules.Config)) *rules.Store {
	t.Helper()
	c := rules.Config{File: fileOf(t, `{}`), Queen: q, Keys: keyring(t, 1), References: func() func(*bridge.Node) { return environment },
		Left: func(context.Context, string) (string, error) { return "", nil }}
	if change != nil {
		change(&c)
	}
	return rules.New(c)
}

// running follows the stored resources until the test ends.
func running(t *testing.T, s *rules.Store) *rules.Store {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return s
}

var (
	target = bridge.Resource{Kind: bridge.KindTarget, Name: "ci"}
	route  = bridge.Resource{Kind: bridge.KindRoute, Name: "pushes"}
	source = bridge.Resource{Kind: bridge.KindSource, Name: "github"}
)

const (
	targetDoc = `{"http":{"url":"http://ci.example.com/hook","timeout":"60s"}}`
	routeDoc  = `{"queue":"github","target":"ci"}`
)

func put(t *testing.T, s *rules.Store, r bridge.Resource, doc string) rules.Written {
	t.Helper()
	out, err := s.Write(t.Context(), rules.Write{Resource: r, Document: parse(t, doc), By: "test"})
	if err != nil {
		t.Fatalf("Write(%s): %v", r, err)
	}
	return out
}

func writeErr(t *testing.T, s *rules.Store, w rules.Write) error {
	t.Helper()
	_, err := s.Write(t.Context(), w)
	if err == nil {
		t.Fatalf("Write(%s) succeeded", w.Resource)
	}
	return err
}

func document(e rules.Entry) string { return string(e.Document.AppendJSON(nil)) }

// eventually waits until the catalog is as wanted.
func eventually(t *testing.T, s *rules.Store, within time.Duration, what string, want func(*rules.Catalog) bool) {
	t.Helper()
	changed := make(chan struct{}, 1)
	s.Subscribe(func(*rules.Catalog) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	deadline := time.After(within)
	for !want(s.Catalog()) {
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("not within %s: %s; problems: %q", within, what, s.Notes())
		}
	}
}
