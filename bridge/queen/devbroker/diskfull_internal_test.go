package devbroker

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// limitPages makes SQLite act as if the disk were full beyond a number of
// pages.
func limitPages(t *testing.T, b *Broker, pages int) {
	t.Helper()
	s, ok := b.store.(*sqliteStore)
	if !ok {
		t.Fatal("not the SQLite store")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.write.ExecContext(context.Background(), fmt.Sprintf("PRAGMA max_page_count = %d", pages)); err != nil {
		t.Fatal(err)
	}
}

func send(t *testing.T, b *Broker, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	b.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	return w
}

// until waits for something that is about to happen.
func until(t *testing.T, what string, happened func() bool) {
	t.Helper()
	tick, deadline := time.NewTicker(time.Millisecond), time.After(10*time.Second)
	defer tick.Stop()
	for !happened() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}

func pushText(id string, size int) string {
	return fmt.Sprintf(`{"items":[{"queue":"q","partition":"p","transactionId":"%s","payload":"%s"}]}`, id, strings.Repeat("x", size))
}

// fullFile makes the file a queue's large messages go to act as if the disk
// were full, until fixed is called.
func fullFile(t *testing.T, b *Broker, queue string) (fixed func()) {
	t.Helper()
	s, ok := b.store.(*sqliteStore)
	if !ok {
		t.Fatal("not the SQLite store")
	}
	b.mu.Lock()
	num := b.st.queues[queue].num
	b.mu.Unlock()
	return s.bodies.fill(t, num)
}

// fill makes a queue's next file a full disk, until fixed is called.
func (b *bodies) fill(t *testing.T, queue int64) (fixed func()) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	num := b.last
	if err := os.Symlink("/dev/full", b.path(num)); err != nil {
		t.Fatal(err)
	}
	b.shut(b.current[queue])
	b.current[queue] = &bodyFile{num: num, queue: queue}
	return func() {
		b.seal(num)
		if err := b.remove(num); err != nil {
			t.Error(err)
		}
	}
}

// When the disk is full every request is refused with the reason, nothing that
// was refused is known afterwards, and all is well once there is room.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	for _, disk := range []struct {
		name string
		size int // of the push that meets the end of the disk
		fill func(*testing.T, *Broker) (fixed func())
	}{
		{"database", 20 << 10, func(t *testing.T, b *Broker) func() {
			limitPages(t, b, 1)
			return func() { limitPages(t, b, 1<<30) }
		}},
		{"file", 1 << 20, func(t *testing.T, b *Broker) func() { return fullFile(t, b, "q") }},
	} {
		t.Run(disk.name, func(t *testing.T) {
			t.Parallel()
			testDiskFull(t, disk.size, disk.fill)
		})
	}
}

func testDiskFull(t *testing.T, size int, fill func(*testing.T, *Broker) (fixed func())) {
	dir := t.TempDir()
	b, err := Open(Config{Dir: dir, RetentionInterval: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if w := send(t, b, "POST", "/api/v1/push", pushText("before", 10)); w.Code != http.StatusCreated {
		t.Fatal(w.Body)
	}
	parked := make(chan int)
	go func() {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/pop/queue/empty?wait=true&timeout=60000", nil)
		b.ServeHTTP(w, r)
		parked <- w.Code
	}()
	until(t, "the pop is parked", func() bool { return parkedPops(b, "empty") > 0 })
	fixed := fill(t, b)
	w := send(t, b, "POST", "/api/v1/push", pushText("lost", size))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "full") && !strings.Contains(w.Body.String(), "no space left") {
		t.Errorf("push on a full disk = %d %s, want 503 and why", w.Code, w.Body)
	}
	if w := send(t, b, "POST", "/api/v1/push", pushText("after", 10)); w.Code != http.StatusServiceUnavailable && w.Code != http.StatusCreated {
		t.Errorf("push after = %d %s", w.Code, w.Body)
	}
	fixed()
	until(t, "a round has brought the broker back", func() bool { return send(t, b, "GET", "/health", "").Code == http.StatusOK })
	// The parked pop was told, or looked again once all was well.
	send(t, b, "POST", "/api/v1/push", `{"items":[{"queue":"empty","payload":1}]}`)
	if code := <-parked; code != http.StatusServiceUnavailable && code != http.StatusOK {
		t.Errorf("the parked pop = %d, want 503 or the message", code)
	}
	for _, when := range []string{"once there is room", "opened again"} {
		w := send(t, b, "GET", "/api/v1/pop/queue/q?autoAck=true&subscriptionMode=all&consumerGroup="+strings.Fields(when)[0], "")
		if body := w.Body.String(); !strings.Contains(body, `"before"`) || strings.Contains(body, `"lost"`) {
			t.Errorf("%s: pop = %d %.300s, want what was stored", when, w.Code, body)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if b, err = Open(Config{Dir: dir}); err != nil {
			t.Fatal(err)
		}
	}
	if w := send(t, b, "POST", "/api/v1/push", pushText("lost", 10)); !strings.Contains(w.Body.String(), `"queued"`) {
		t.Errorf("the refused push sent again = %s, want queued", w.Body)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func parkedPops(b *Broker, queue string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q := b.st.queues[queue]; q != nil && len(q.groups) > 0 {
		return q.groups[0].waiting.Len()
	}
	return 0
}
