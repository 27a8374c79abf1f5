package ingress_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/queentest"
	"github.com/queenbridge/queenbridge/ingress"
)

// pipeListener serves connections from memory, so that a fake clock rules
// them, too.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error { l.once.Do(func() { close(l.closed) }); return nil }

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func (l *pipeListener) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			client, server := net.Pipe()
			select {
			case l.conns <- server:
				return client, nil
			case <-l.closed:
				return nil, net.ErrClosed
			}
		}}}
}

func TestStopFinishesWhatWasReceived(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &queentest.Shelf{Before: func(ctx context.Context, _ []queen.Item) error {
			time.Sleep(2 * time.Second)
			return nil
		}}
		s, _ := newServer(t, ingress.Config{Sources: []bridge.Source{open("a")}, Queen: q})
		l := newPipeListener()
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- s.Run(ctx, l) }()
		status := make(chan int, 1)
		go func() { status <- postStatus(l.client()) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if _, err := l.client().Post("http://h/in/a", "", strings.NewReader("{}")); err == nil {
			t.Error("a new connection was taken after the stop")
		}
		if got := <-status; got != 200 {
			t.Errorf("a request received before the stop: status %d, want 200", got)
		}
		if err := <-stopped; err != nil {
			t.Errorf("Run = %v, want nil: all was stored", err)
		}
		if n := len(q.Items()); n != 1 {
			t.Errorf("%d items stored, want 1", n)
		}
	})
}

func postStatus(c *http.Client) int {
	res, err := c.Post("http://h/in/a", "", strings.NewReader("{}"))
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}

func TestStopCutsOffWhatIsLeftAndSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		entered := make(chan struct{}, 10)
		logs := &logBuffer{}
		c := ingress.Config{Sources: []bridge.Source{open("a")}, Queen: &queentest.Shelf{Before: blockUntil(entered, nil)},
			Logger: jsonLogger(logs), StopTimeout: time.Second}
		c.Settings.EnqueueTimeout = time.Hour
		s, _ := newServer(t, c)
		l := newPipeListener()
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- s.Run(ctx, l) }()
		status := make(chan int, 1)
		go func() { status <- postStatus(l.client()) }()
		<-entered
		start := time.Now()
		cancel()
		err := <-stopped
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("the stop took %v, want 1s", took)
		}
		if err == nil || !strings.Contains(err.Error(), `1 events for queue "a" not stored`) {
			t.Errorf("Run = %v, want it to name what was left", err)
		}
		if !strings.Contains(logs.String(), "ingress stopped with events not stored") {
			t.Errorf("log does not say what was left:\n%s", logs)
		}
		if got := <-status; got == 200 {
			t.Errorf("status 200 for an event that was not stored")
		}
		if rec := call(s.Handler(), "/in/a", "{}"); rec.Code != 503 {
			t.Errorf("after the stop: status %d, want 503", rec.Code)
		}
	})
}
