package queen

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Prepared is an encoded transaction: its bytes stay the same over resends.
// Safe for concurrent use.
type Prepared struct {
	body         []byte
	acks, pushes int
	kv           []KVOp
	timers       []Timer
	node         string
}

// Prepare encodes a transaction once. It refuses what Queen would take
// without a fence (an ack without lease or group), lose (queue names), or
// store to the harm of its partition (a timer payload that is not JSON).
//
// A pushed payload is re-encoded by Queen: keys sorted, duplicates dropped,
// integers beyond 64 bits to floats; a lone surrogate or 1e400 is
// RollbackBadRequest (measured 1.3.0).
func (t Transaction) Prepare() (Prepared, error) {
	p := Prepared{acks: len(t.Acks), pushes: len(t.Pushes), kv: slices.Clone(t.KV), timers: slices.Clone(t.Timers)}
	dst, err := t.append(make([]byte, 0, t.size()))
	if err != nil {
		return Prepared{}, fmt.Errorf("transaction: %w", err)
	}
	p.body = dst
	for i := range p.timers {
		p.timers[i].Payload = nil // the body has it
	}
	for i := range p.kv {
		p.kv[i].Value = nil
	}
	if len(t.Acks) > 0 {
		p.node = t.Acks[0].Lease.Node
	}
	return p, nil
}

// Len is the size of the encoded body in bytes.
func (p Prepared) Len() int { return len(p.body) }

// size guesses the encoded size.
func (t *Transaction) size() int {
	n := 256 + 256*(len(t.Acks)+len(t.Pushes)+len(t.KV)+len(t.Timers))
	for i := range t.Pushes {
		n += len(t.Pushes[i].Payload)
	}
	for i := range t.KV {
		n += len(t.KV[i].Value)
	}
	for i := range t.Timers {
		n += len(t.Timers[i].Payload) * 4 / 3
	}
	return n
}

func (t *Transaction) append(dst []byte) (_ []byte, err error) {
	if dst, err = t.appendOperations(dst); err != nil {
		return nil, err
	}
	dst = t.appendLeases(dst)
	if len(t.KV) > 0 {
		if dst, err = appendKV(append(dst, `,"kv":`...), t.KV); err != nil {
			return nil, err
		}
	}
	if len(t.Timers) > 0 {
		if dst, err = appendTimers(append(dst, `,"timers":`...), t.Timers); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// appendOperations writes the acks, then the pushes as one operation. The
// array must be there, even empty, on 1.x.
func (t *Transaction) appendOperations(dst []byte) (_ []byte, err error) {
	dst = append(dst, `{"operations":[`...)
	for i := range t.Acks {
		if err := t.Acks[i].check(); err != nil {
			return nil, fmt.Errorf("ack %d: %w", i, err)
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendAck(append(dst, `{"type":"ack",`...), &t.Acks[i], true), '}')
	}
	if len(t.Pushes) > 0 {
		if len(t.Acks) > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendItems(append(dst, `{"type":"push","items":`...), t.Pushes); err != nil {
			return nil, fmt.Errorf("push: %w", err)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']'), nil
}

// appendLeases names the leases once more, as older builders did: a hint, the
// fence is each ack's own leaseId (queen-contract.md §8.1).
func (t *Transaction) appendLeases(dst []byte) []byte {
	var leases []string
	for i := range t.Acks {
		if id := t.Acks[i].Lease.ID; !slices.Contains(leases, id) {
			leases = append(leases, id)
		}
	}
	for i, id := range leases {
		dst = appendString(append(dst, [...]string{`,"requiredLeases":[`, `,`}[min(i, 1)]...), id)
	}
	if len(leases) > 0 {
		dst = append(dst, ']')
	}
	return dst
}

// Commit sends a prepared transaction once. A *RollbackError means that
// nothing was committed; a *TimersIgnoredError that all but the timers was.
// After any other error it may have been (Uncertain), or was refused before
// it was looked at (Denied, *StatusError below 500): send the same Prepared
// again where Temporary says so.
//
// It goes to the node of its first lease while that one is up.
func (c *Client) Commit(ctx context.Context, p Prepared) (Commit, error) {
	if len(p.body) == 0 {
		return Commit{}, errors.New("commit: the transaction is not prepared")
	}
	body := newPayload(p.body, nil)
	defer body.release()
	a, err := c.do(ctx, &call{method: "POST", path: "/api/v1/transaction", body: body, node: p.node, tries: onlyOnce})
	if err != nil {
		return Commit{}, err
	}
	return p.read(a)
}

// transactionBody is the envelope of a transaction's answer; the fields of a
// refusal stand beside it.
type transactionBody struct {
	Success *bool             `json:"success"`
	Results []transactionItem `json:"results"`
}

type transactionItem struct {
	Type    string `json:"type"`
	OpIndex *int   `json:"opIndex"`
	Success *bool  `json:"success"`
	timerRow
	kvRow
}

func (p *Prepared) read(a *answer) (Commit, error) {
	if refused := a.rollback(); refused != nil {
		return Commit{}, refused
	}
	var wire transactionBody
	if err := a.decode(&wire); err != nil {
		return Commit{}, err
	}
	if wire.Success == nil || !*wire.Success {
		return Commit{}, a.misfit("neither committed nor refused")
	}
	return p.verdicts(a, wire.Results)
}

// verdicts files each row of a committed transaction. Every operation must
// have one.
func (p *Prepared) verdicts(a *answer, rows []transactionItem) (Commit, error) {
	acks, pushes := 0, 0
	kv := make([]*transactionItem, len(p.kv))
	timers := make([]*transactionItem, len(p.timers))
	for i := range rows {
		row, into := &rows[i], kv
		switch row.Type {
		case "ack":
			acks += settled(row)
			continue
		case "push":
			pushes += settled(row)
			continue
		case "timer":
			into = timers
		case "kv":
		default: // a later broker's: not ours
			continue
		}
		if row.OpIndex == nil || *row.OpIndex < 0 || *row.OpIndex >= len(into) || into[*row.OpIndex] != nil {
			return Commit{}, a.misfit("result %d is of no operation sent", i)
		}
		into[*row.OpIndex] = row
	}
	if missing := len(timers) - answered(timers); missing > 0 {
		return Commit{}, &TimersIgnoredError{Sent: len(timers), Answered: len(timers) - missing}
	}
	if acks != p.acks || pushes != p.pushes || answered(kv) != len(kv) {
		return Commit{}, a.misfit("%d acks, %d pushes, %d kv confirmed of %d, %d, %d", acks, pushes, answered(kv), p.acks, p.pushes, len(kv))
	}
	return p.commit(a, kv, timers)
}

func settled(row *transactionItem) int {
	if row.Success != nil && *row.Success {
		return 1
	}
	return 0
}

func answered(rows []*transactionItem) (n int) {
	for _, row := range rows {
		if row != nil {
			n++
		}
	}
	return n
}

func (p *Prepared) commit(a *answer, kv, timers []*transactionItem) (Commit, error) {
	done := Commit{Timers: make([]TimerStatus, 0, len(timers)), KV: make([]KVResult, 0, len(kv))}
	for i, row := range timers {
		status, err := row.status(&p.timers[i])
		if err != nil {
			return Commit{}, a.misfit("timer %d: %v", i, err)
		}
		done.Timers = append(done.Timers, status)
	}
	for i, row := range kv {
		result, err := row.result(&p.kv[i])
		if err != nil {
			return Commit{}, a.misfit("kv %d: %v", i, err)
		}
		done.KV = append(done.KV, result)
	}
	return done, nil
}
