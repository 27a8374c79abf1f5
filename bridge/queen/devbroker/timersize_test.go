package devbroker_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sizeTimers asks for the big run: so many pending timers.
const sizeTimers = "DEVBROKER_SIZE_TIMERS"

// TestManyTimers keeps many timers pending and measures how late others fire
// beside them, what the broker costs while nothing happens, and how long the
// next one takes to open the data. A normal run is small, and its bounds leave
// room for a busy machine; the targets are for a million timers.
func TestManyTimers(t *testing.T) {
	n, late := 5_000, 2*time.Second
	busy := 0.5
	if v, err := strconv.Atoi(os.Getenv(sizeTimers)); err == nil {
		n, late, busy = v, 50*time.Millisecond, 0.01
	}
	p := serve(t, t.TempDir())
	defer func() { p.kill(t) }()
	start := time.Now()
	for from := 0; from < n; from += 256 {
		p.schedule(t, from, min(256, n-from), 24*time.Hour)
	}
	took := time.Since(start)
	worst := p.lateness(t)
	cost := p.idle(t, 5*time.Second)
	full := p.memory(t)
	t.Logf("%d timers: %.0f/s in, fired %v late at most, idle at %.2f%% of a core, %d MiB", n, float64(n)/took.Seconds(), worst, 100*cost, full>>20)
	if worst > late || cost > busy {
		t.Errorf("over the targets of %v late and %.0f%% of a core", late, 100*busy)
	}
}

func (p *process) post(t *testing.T, method, path, body string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %.300s %v", method, path, resp.StatusCode, text, err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *process) schedule(t *testing.T, from, n int, delay time.Duration) {
	t.Helper()
	ops := make([]string, n)
	for i := range ops {
		ops[i] = fmt.Sprintf(`{"op":"schedule","queue":"far","timerKey":"k%d","delayMs":%d,"txn":"t%d","payload":"eyJhIjoxfQ=="}`, from+i, delay.Milliseconds()+int64(from+i), from+i)
	}
	p.post(t, http.MethodPost, "/api/v1/timers", `{"operations":[`+strings.Join(ops, ",")+`]}`, nil)
}

// lateness fires timers one by one and returns the worst difference between
// when one was due and when its message was stored.
func (p *process) lateness(t *testing.T) time.Duration {
	t.Helper()
	var all []time.Duration
	for i := range 50 {
		var set struct {
			Results []struct{ DeliverAt time.Time }
		}
		p.post(t, http.MethodPost, "/api/v1/timers",
			fmt.Sprintf(`[{"op":"schedule","queue":"near","timerKey":"k","delayMs":%d,"txn":"n%d","payload":"MQ=="}]`, 5+i%20, i), &set)
		var got popped
		p.post(t, http.MethodGet, "/api/v1/pop/queue/near?consumerGroup=g&subscriptionMode=all&wait=true&timeout=20000&autoAck=true", "", &got)
		if len(got.Messages) != 1 || len(set.Results) != 1 {
			t.Fatalf("timer %d: %+v, %+v", i, set, got)
		}
		at, err := time.Parse(time.RFC3339Nano, got.Messages[0].CreatedAt)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, at.Sub(set.Results[0].DeliverAt))
	}
	return slices.Max(all)
}

// idle is the part of a core that the broker uses while nobody asks anything.
func (p *process) idle(t *testing.T, span time.Duration) float64 {
	t.Helper()
	before := p.ticks(t)
	<-time.After(span)
	const perSecond = 100 // USER_HZ
	return float64(p.ticks(t)-before) / perSecond / span.Seconds()
}

func (p *process) ticks(t *testing.T) (n int64) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	for _, field := range strings.Fields(rest)[11:13] { // utime, stime
		v, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		n += v
	}
	return n
}
