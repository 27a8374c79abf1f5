package queen_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func recordedTimer() queen.Timer {
	return queen.Timer{Queue: "kl-a263e9", Key: "r/route/evt-1/1", Partition: "Default", Delay: 10 * time.Minute,
		TransactionID: "evt-1#1", Payload: []byte(`{"k": "r/route/evt-1/1"}`)}
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]queen.TimerStatus{"schedule": queen.TimerScheduled, "schedule the same key again: rescheduled": queen.TimerRescheduled} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, b := replaying(t, "timers", name)
			timer := recordedTimer()
			if want == queen.TimerRescheduled {
				timer.Delay = 700 * time.Second
			}
			got, err := c.Schedule(t.Context(), []queen.Timer{timer})
			if err != nil || len(got) != 1 || got[0] != want {
				t.Fatalf("Schedule() = %v, %v; want %s", got, err, want)
			}
			body := strings.Replace(b.last(t).body, `"partition":"Default",`, ``, 1)
			sameJSON(t, "body", body, string(recorded(t, "timers", name).Request.Body))
		})
	}
	if got, err := (&queen.Client{}).Schedule(t.Context(), nil); len(got) > 0 || err != nil {
		t.Errorf("Schedule(nil) = %v, %v", got, err)
	}
}

func TestScheduleRefusesAnswersThatDoNotFit(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{}`, `{"results":[]}`, `{"results":[{"ok":true,"status":"absent"}]}`, `{"results":[{"ok":false,"status":"scheduled"}]}`,
		`{"results":[{"ok":true,"status":"scheduled","timerKey":"other"}]}`, `{"results":[{"ok":true,"status":"scheduled","queue":"other"}]}`, `[]`} {
		c, _ := answering(t, 200, body)
		if got, err := c.Schedule(t.Context(), []queen.Timer{recordedTimer()}); !queen.Uncertain(err) {
			t.Errorf("Schedule() answered %s = %v, %v", body, got, err)
		}
	}
}

func TestCancelTimer(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]queen.TimerStatus{"cancel": queen.TimerCancelled, "cancel again: absent": queen.TimerAbsent, "cancel a claimed timer: too_late": queen.TimerTooLate} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, b := replaying(t, "timers", name)
			got, err := c.CancelTimer(t.Context(), "a/b", "l i%n/+1/é")
			if err != nil || got != want {
				t.Errorf("CancelTimer() = %s, %v; want %s", got, err, want)
			}
			if s := b.last(t); s.method != "DELETE" || s.uri != "/api/v1/timers/a%2Fb/l%20i%25n/+1/%C3%A9" {
				t.Errorf("sent %s %s", s.method, s.uri)
			}
		})
	}
	c, _ := answering(t, 200, `{"ok":true,"status":"scheduled"}`)
	if got, err := c.CancelTimer(t.Context(), "q", "k"); !queen.Uncertain(err) {
		t.Errorf("CancelTimer() = %s, %v; want an uncertain error", got, err)
	}
	if _, err := c.CancelTimer(t.Context(), "", "k"); err == nil || queen.Uncertain(err) {
		t.Errorf("CancelTimer() without queue: %v", err)
	}
}

// timerPages serves three timers in pages of two.
func timerPages(w http.ResponseWriter, r *http.Request) {
	const head = `{"rows":[`
	row := func(key string) string {
		return `{"timerKey":"` + key + `","partition":"p","txn":"t","messageId":"m","deliverAt":"2026-11-30T08:21:20.638842Z","attempts":0,"lastError":null,"claimed":false}`
	}
	body := head + row("a") + "," + row("b/1") + `],"truncated":true,"nextAfter":"b/1"}`
	switch {
	case r.URL.Query().Get("limit") == "1":
		body = head + row("a") + `],"truncated":true,"nextAfter":"a"}`
	case r.URL.Query().Get("after") == "b/1":
		body = head + row("c") + `],"truncated":false,"nextAfter":null}`
	}
	_, _ = w.Write([]byte(body))
}

func TestListAndCountTimers(t *testing.T) {
	t.Parallel()
	b := newBroker(t, timerPages)
	c := client(t, queen.Config{URLs: []string{b.URL}})
	rows, next, err := c.ListTimers(t.Context(), "q", "", 2)
	want := queen.TimerRow{Key: "b/1", Partition: "p", TransactionID: "t", MessageID: "m", DeliverAt: time.Date(2026, 11, 30, 8, 21, 20, 638842000, time.UTC)}
	if err != nil || len(rows) != 2 || next != "b/1" {
		t.Fatalf("ListTimers() = %v, %q, %v", rows, next, err)
	}
	if d := cmp.Diff(want, rows[1]); d != "" {
		t.Error(d)
	}
	if rows, next, err = c.ListTimers(t.Context(), "q", next, 2); err != nil || len(rows) != 1 || next != "" {
		t.Errorf("second ListTimers() = %v, %q, %v", rows, next, err)
	}
	for limit, want := range map[int]int{0: 0, 1: 1, 2: 2, 3: 3, 5000: 3} {
		if got, err := c.CountTimers(t.Context(), "q", limit); err != nil || got != want {
			t.Errorf("CountTimers(%d) = %d, %v; want %d", limit, got, err, want)
		}
	}
	c, _ = replaying(t, "timers", "list of an unknown queue")
	if got, err := c.CountTimers(t.Context(), "nope", 10); err != nil || got != 0 {
		t.Errorf("CountTimers() of an unknown queue = %d, %v", got, err)
	}
}

// A broker whose pages never end does not hold CountTimers.
func TestCountTimersEnds(t *testing.T) {
	t.Parallel()
	c, b := answering(t, 200, `{"rows":[],"truncated":true,"nextAfter":"a"}`)
	if got, err := c.CountTimers(t.Context(), "q", 10); err != nil || got != 0 || len(b.requests()) > 2 {
		t.Errorf("CountTimers() = %d, %v after %d requests", got, err, len(b.requests()))
	}
}
