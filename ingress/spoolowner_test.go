package ingress_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
	"github.com/queenbridge/queenbridge/ingress"
)

func TestASpoolHasOneOwner(t *testing.T) {
	t.Parallel()
	c := spooling(t, newAwayQueen(true), open("a"))
	w := newSpooling(t, c)
	if _, err := ingress.OpenSpool(c.Settings.Spool.Dir, ingress.SpoolOptions{}); !errors.Is(err, ingress.ErrSpoolInUse) {
		t.Errorf("OpenSpool beside a bridge = %v, want ErrSpoolInUse", err)
	}
	if _, err := ingress.New(c); !errors.Is(err, ingress.ErrSpoolInUse) {
		t.Errorf("a second bridge: New = %v, want ErrSpoolInUse", err)
	}
	w.post(t, "/in/a", "{}", "X-Id", "1")
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	s, err := ingress.OpenSpool(c.Settings.Spool.Dir, ingress.SpoolOptions{})
	if err != nil {
		t.Fatalf("OpenSpool afterwards = %v", err)
	}
	defer s.Close()
	if st, err := s.Status(); err != nil || len(st.Queues) != 1 {
		t.Errorf("Status = %+v, %v", st, err)
	}
}

func TestDrainPushesAllThatWaits(t *testing.T) {
	t.Parallel()
	c := spooling(t, newAwayQueen(true), keyed("a"), keyed("b"))
	w := newSpooling(t, c)
	for i := range 30 {
		w.post(t, "/in/"+string("ab"[i%2]), "{}", "X-Id", fmt.Sprintf("%02d", i), "X-Key", fmt.Sprint("p", i%4))
	}
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	s, err := ingress.OpenSpool(c.Settings.Spool.Dir, ingress.SpoolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	away, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if n, err := s.Drain(away, newAwayQueen(true)); n != 0 || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errAway) {
		t.Errorf("Drain to a Queen that is away = %d, %v, want 0 and why", n, err)
	}
	q := &queentest.Shelf{}
	if n, err := s.Drain(t.Context(), q); n != 30 || err != nil {
		t.Errorf("Drain = %d, %v, want 30", n, err)
	}
	checkOrder(t, q.Items(), 30)
	if st, err := s.Status(); err != nil || len(st.Queues) != 0 || st.Bytes != 0 {
		t.Errorf("Status = %+v, %v, want nothing", st, err)
	}
}

// The room on disk is given back.
func TestADrainedSpoolIsSmall(t *testing.T) {
	t.Parallel()
	c := spooling(t, newAwayQueen(true), open("a"))
	w := newSpooling(t, c)
	body := `{"pad":"` + strings.Repeat("x", 200<<10) + `"}`
	for i := range 20 {
		w.post(t, "/in/a", body, "X-Id", fmt.Sprint(i))
	}
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		info, err := os.Stat(filepath.Join(c.Settings.Spool.Dir, "spool.db"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	full := size()
	s, err := ingress.OpenSpool(c.Settings.Spool.Dir, ingress.SpoolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n, err := s.Drain(t.Context(), &queentest.Shelf{}); n != 20 || err != nil {
		t.Errorf("Drain = %d, %v", n, err)
	}
	if full < 4_000_000 || size() > 256<<10 {
		t.Errorf("%d bytes full, %d bytes drained; want the room given back", full, size())
	}
}
