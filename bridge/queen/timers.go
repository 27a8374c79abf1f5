package queen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// TimerRow is a pending timer, as listed: without its payload.
type TimerRow struct {
	Key           string
	Partition     string
	TransactionID string
	MessageID     string
	DeliverAt     time.Time
	Attempts      int // of firing it
	LastError     string
}

// Schedule sets timers, all or none, and returns one verdict per timer, in
// order. A key that is pending is replaced (TimerRescheduled); one that is
// just firing is left alone (TimerTooLate). At most 256 a call (measured
// 1.3.0).
func (c *Client) Schedule(ctx context.Context, timers []Timer) ([]TimerStatus, error) {
	if len(timers) == 0 {
		return nil, nil
	}
	buf, err := appendTimers(append(c.buffer(), `{"operations":`...), timers)
	if err != nil {
		return nil, err
	}
	body := c.pooled(append(buf, '}'))
	defer body.release()
	a, err := c.do(ctx, &call{method: "POST", path: "/api/v1/timers", body: body})
	if err != nil {
		return nil, err
	}
	var wire struct {
		Results []timerRow `json:"results"`
	}
	if err := a.decode(&wire); err != nil {
		return nil, err
	}
	if len(wire.Results) != len(timers) {
		return nil, a.misfit("%d verdicts for %d timers", len(wire.Results), len(timers))
	}
	statuses := make([]TimerStatus, len(timers))
	for i := range timers {
		if statuses[i], err = wire.Results[i].status(&timers[i]); err != nil {
			return nil, a.misfit("timer %d: %v", i, err)
		}
	}
	return statuses, nil
}

// CancelTimer cancels a pending timer. TimerAbsent means that nothing was
// pending under the key: never set, cancelled, or delivered already.
func (c *Client) CancelTimer(ctx context.Context, queue, key string) (TimerStatus, error) {
	if queue == "" || key == "" {
		return "", errors.New("cancel timer: queue and key are needed")
	}
	a, err := c.do(ctx, &call{method: "DELETE", path: timersPath(queue) + "/" + segments(key)})
	if err != nil {
		return "", err
	}
	var row timerRow
	if err := a.decode(&row); err != nil {
		return "", err
	}
	switch s := TimerStatus(row.Status); s {
	case TimerCancelled, TimerAbsent, TimerTooLate:
		return s, nil
	}
	return "", a.misfit("status %q", row.Status)
}

// maxTimerPage is Queen's own limit of a page (queen-contract.md §9).
const maxTimerPage = 1000

// ListTimers lists pending timers of a queue in byte order of their keys,
// from behind the key after ("" from the start), up to limit (1 to 1000).
// next is where to go on, or "".
func (c *Client) ListTimers(ctx context.Context, queue, after string, limit int) (rows []TimerRow, next string, err error) {
	page, err := c.timerPage(ctx, queue, after, limit)
	if err != nil {
		return nil, "", err
	}
	for _, r := range page.Rows {
		rows = append(rows, TimerRow{Key: r.TimerKey, Partition: r.Partition, TransactionID: r.Txn, MessageID: r.MessageID,
			DeliverAt: wireTime(r.DeliverAt), Attempts: r.Attempts, LastError: string(r.LastError)})
	}
	return rows, page.next(), nil
}

// CountTimers counts pending timers of a queue, up to limit: 1.3.0 has no
// count of its own, so they are listed.
func (c *Client) CountTimers(ctx context.Context, queue string, limit int) (int, error) {
	n, after := 0, ""
	for n < limit {
		page, err := c.timerPage(ctx, queue, after, min(limit-n, maxTimerPage))
		if err != nil {
			return 0, err
		}
		n += len(page.Rows)
		next := page.next()
		if next == "" || next <= after {
			break
		}
		after = next
	}
	return min(n, limit), nil
}

type timerPage struct {
	Rows []struct {
		TimerKey  string   `json:"timerKey"`
		Partition string   `json:"partition"`
		Txn       string   `json:"txn"`
		MessageID string   `json:"messageId"`
		DeliverAt string   `json:"deliverAt"`
		Attempts  int      `json:"attempts"`
		LastError jsonText `json:"lastError"`
	} `json:"rows"`
	Truncated bool   `json:"truncated"`
	NextAfter string `json:"nextAfter"`
}

func (p *timerPage) next() string {
	if !p.Truncated {
		return ""
	}
	return p.NextAfter
}

func (c *Client) timerPage(ctx context.Context, queue, after string, limit int) (*timerPage, error) {
	query := "limit=" + strconv.Itoa(min(max(limit, 1), maxTimerPage))
	if after != "" {
		query += "&after=" + url.QueryEscape(after)
	}
	a, err := c.do(ctx, &call{method: "GET", path: timersPath(queue), query: query, safe: true})
	if err != nil {
		return nil, err
	}
	page := &timerPage{}
	return page, a.decode(page)
}

func timersPath(queue string) string { return "/api/v1/timers/" + segment(queue) }

// appendTimers appends the array of schedule operations.
func appendTimers(dst []byte, timers []Timer) ([]byte, error) {
	dst = append(dst, '[')
	for i := range timers {
		if err := timers[i].check(); err != nil {
			return nil, fmt.Errorf("timer %d: %w", i, err)
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = timers[i].append(dst)
	}
	return append(dst, ']'), nil
}

// check refuses what Queen would schedule to the harm of its partition: a
// payload that is not JSON, or an id too long, makes the pop that meets it
// unreadable (measured 1.3.0).
func (t *Timer) check() error {
	for _, err := range [...]error{checkQueue(t.Queue), checkText("partition", t.Partition),
		checkText("timer key", t.Key), checkTransactionID(t.TransactionID)} {
		if err != nil {
			return err
		}
	}
	if !json.Valid(t.Payload) {
		return errors.New("the payload is not JSON")
	}
	return nil
}

func (t *Timer) append(dst []byte) []byte {
	dst = appendField(dst, `{"op":"schedule","queue":`, t.Queue)
	dst = appendField(dst, `,"timerKey":`, t.Key)
	dst = appendField(dst, `,"partition":`, t.Partition)
	dst = appendMillis(dst, `,"delayMs":`, t.Delay)
	dst = appendField(dst, `,"txn":`, t.TransactionID)
	dst = appendBase64(dst, `,"payload":`, t.Payload)
	return append(dst, '}')
}

// timerRow is one verdict, standalone or in a transaction.
type timerRow struct {
	Status   string  `json:"status"`
	OK       *bool   `json:"ok"`
	Queue    *string `json:"queue"`
	TimerKey *string `json:"timerKey"`
}

// status checks that the row answers t and reads its verdict.
func (r *timerRow) status(t *Timer) (TimerStatus, error) {
	if r.Queue != nil && *r.Queue != t.Queue || r.TimerKey != nil && *r.TimerKey != t.Key {
		return "", errors.New("verdict of another timer")
	}
	switch s := TimerStatus(r.Status); s {
	case TimerScheduled, TimerRescheduled:
		if r.OK != nil && *r.OK {
			return s, nil
		}
	case TimerTooLate:
		return s, nil
	}
	return "", fmt.Errorf("status %q is no verdict on a schedule", clip(r.Status, 64))
}
