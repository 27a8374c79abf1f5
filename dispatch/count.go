package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// count is how often the head of a partition failed (ordering partition). It
// is kept in Queen's KV under bridge.AttemptKey, with the id of the message it
// belongs to: the next message must not inherit it.
type count struct {
	MessageID   string    `json:"id"`
	N           int       `json:"n"`
	FirstFailed time.Time `json:"first_failed"`
	// By tells two writers of the same count apart.
	By string `json:"by"`
}

// countTTL outlives every delivery: a count that expires is a retry budget
// that starts anew.
func countTTL(p bridge.Policy) time.Duration { return p.MaxAge() + 2*time.Hour }

// countBy is the By of a count; "" where value is none.
func countBy(value json.RawMessage) string {
	var c count
	if json.Unmarshal(value, &c) != nil {
		return ""
	}
	return c.By
}

// tally is a partition's count as Queen has it.
type tally struct {
	count
	version int64 // 0: there is none
}

// counts reads counts, many keys per call: Queen allows 200 KV reads a second
// whatever they ask for (measured 1.3.0).
type counts struct {
	d *Dispatcher

	mu      sync.Mutex
	waiting []*countAsk
	flying  bool
}

type countAsk struct {
	key    string
	answer chan countAnswer // buffered
}

type countAnswer struct {
	tally
	err error
}

// maxCountKeys bounds the keys of one call; Queen takes 1024.
const maxCountKeys = 256

// read reads one count. An error is Queen's, or the end of ctx.
func (c *counts) read(ctx context.Context, key string) (tally, error) {
	ask := &countAsk{key: key, answer: make(chan countAnswer, 1)}
	c.mu.Lock()
	c.waiting = append(c.waiting, ask)
	c.kick()
	c.mu.Unlock()
	select {
	case a := <-ask.answer:
		return a.tally, a.err
	case <-ctx.Done():
		return tally{}, context.Cause(ctx)
	}
}

// kick starts a call unless one is under way; mu is held.
func (c *counts) kick() {
	if c.flying || len(c.waiting) == 0 {
		return
	}
	n := min(len(c.waiting), maxCountKeys)
	asks := c.waiting[:n:n]
	c.waiting = c.waiting[n:]
	c.flying = true
	c.d.spawn(func() {
		c.answer(asks)
		c.mu.Lock()
		c.flying = false
		c.kick()
		c.mu.Unlock()
	})
}

func (c *counts) answer(asks []*countAsk) {
	keys := make([]string, 0, len(asks))
	byKey := make(map[string][]*countAsk, len(asks))
	for _, a := range asks {
		if byKey[a.key] == nil {
			keys = append(keys, a.key)
		}
		byKey[a.key] = append(byKey[a.key], a)
	}
	found, err := c.getMany(keys)
	for key, asks := range byKey {
		for _, a := range asks {
			t, ok := found[key]
			if err == nil && !ok {
				a.answer <- countAnswer{err: errors.New("the answer lacks a key")}
				continue
			}
			a.answer <- countAnswer{tally: t, err: err}
		}
	}
}

func (c *counts) getMany(keys []string) (map[string]tally, error) {
	results, err := c.d.queen.KV(c.d.settling, []queen.KVOp{{Op: "getMany", Namespace: bridge.KVNamespace, Keys: keys}})
	if err != nil {
		return nil, fmt.Errorf("read attempt counts: %w", err)
	}
	if len(results) != 1 {
		return nil, fmt.Errorf("read attempt counts: %d answers", len(results))
	}
	found := make(map[string]tally, len(keys))
	for _, key := range results[0].Missing {
		found[key] = tally{}
	}
	for _, row := range results[0].Rows {
		t := tally{version: row.Version}
		// A count nobody can read counts nothing; it is overwritten.
		_ = json.Unmarshal(row.Value, &t.count)
		found[row.Key] = t
	}
	return found, nil
}

// put writes the count of a message, expecting the version that was read.
func (t tally) put(key string, c count, ttl time.Duration) *queen.KVOp {
	value, _ := json.Marshal(c) // four plain fields
	return &queen.KVOp{
		Op: "put", Namespace: bridge.KVNamespace, Key: key, Value: value,
		TTL: ttl, Expect: &t.version, Required: true,
	}
}
