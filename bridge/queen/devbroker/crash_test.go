package devbroker_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
)

// crashDir makes the test binary serve a broker on this directory instead of
// running tests.
const crashDir = "DEVBROKER_CRASH_DIR"

// crashRounds asks for more rounds than the few of a normal run.
const crashRounds = "DEVBROKER_CRASH_ROUNDS"

func crashChild(dir string) {
	b, err := devbroker.Open(devbroker.Config{
		Dir: dir, CacheBytes: 64 << 10, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(l.Addr())
	server := &http.Server{Handler: b, ReadHeaderTimeout: time.Second}
	fmt.Fprintln(os.Stderr, server.Serve(l))
}

// TestKill kills a serving broker again and again under load and checks, each
// time it is back, that nothing it acknowledged is lost or undone.
func TestKill(t *testing.T) {
	rounds := 3
	if n, err := strconv.Atoi(os.Getenv(crashRounds)); err == nil {
		rounds = n
	}
	k := &killing{t: t, dir: t.TempDir(), facts: facts{pushed: map[string]bool{}, acked: map[string]bool{}, timers: map[string]bool{}}}
	for round := range rounds {
		k.round = round
		k.run()
		k.check()
		if t.Failed() {
			return
		}
	}
	t.Logf("%d rounds: %d pushes, %d acks, %d timers acknowledged", rounds, len(k.pushed), len(k.acked), len(k.timers))
}

// facts are what a broker has acknowledged.
type facts struct {
	mu                    sync.Mutex
	pushed, acked, timers map[string]bool
}

func (f *facts) note(m map[string]bool, ids ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		m[id] = true
	}
}

type killing struct {
	t     *testing.T
	dir   string
	round int
	url   string
	facts
}

// run serves, loads and kills.
func (k *killing) run() {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+k.dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		k.t.Fatalf("the broker did not start: %v", err)
	}
	k.url = "http://" + strings.TrimSpace(line)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() { k.pusher(n, stop) })
		wg.Go(func() { k.consumer(stop) })
	}
	wg.Go(func() { k.scheduler(stop) })
	timer := time.NewTimer(time.Duration(50+rand.IntN(150)) * time.Millisecond)
	<-timer.C
	if err := cmd.Process.Kill(); err != nil {
		k.t.Error(err)
	}
	close(stop)
	wg.Wait()
	_ = cmd.Wait()
	http.DefaultClient.CloseIdleConnections()
}

// call sends a request; ok is false when there was no answer.
func (k *killing) call(method, path string, body any, into any) (ok bool) {
	text, err := json.Marshal(body)
	if err != nil {
		k.t.Error(err)
	}
	req, err := http.NewRequestWithContext(k.t.Context(), method, k.url+path, strings.NewReader(string(text)))
	if err != nil {
		k.t.Error(err)
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		return false
	}
	return len(answer) == 0 || json.Unmarshal(answer, into) == nil
}

func stopped(stop chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

func (k *killing) pusher(n int, stop chan struct{}) {
	for i := 0; !stopped(stop); i++ {
		var items []obj
		var ids []string
		for j := range 1 + i%5 {
			id := fmt.Sprintf("r%d.%d.%d.%d", k.round, n, i, j)
			ids = append(ids, id)
			items = append(items, obj{"queue": "q", "partition": fmt.Sprintf("p%d", (i+j)%7), "transactionId": id, "payload": strings.Repeat("x", i%300)})
		}
		var verdicts []struct{ Status string }
		if k.call("POST", "/api/v1/push", obj{"items": items}, &verdicts) && len(verdicts) == len(ids) {
			k.note(k.pushed, ids...)
		}
	}
}

func (k *killing) consumer(stop chan struct{}) {
	for !stopped(stop) {
		var p popped
		if !k.call("GET", "/api/v1/pop/queue/q?consumerGroup=g&subscriptionMode=all&batch=20&partitions=3&leaseSeconds=1&wait=true&timeout=100", nil, &p) {
			continue
		}
		var acks []obj
		for _, m := range p.Messages {
			k.mu.Lock()
			if k.acked[m.TransactionID] {
				k.t.Errorf("%s was acknowledged and comes again", m.TransactionID)
			}
			k.mu.Unlock()
			acks = append(acks, ackOf(m.LeaseID, m.PartitionID, m.TransactionID+" completed"))
		}
		var verdicts []verdict
		if len(acks) == 0 || !k.call("POST", "/api/v1/ack/batch", obj{"consumerGroup": "g", "acknowledgments": acks}, &verdicts) {
			continue
		}
		for i, v := range verdicts {
			if v.Success {
				k.note(k.acked, p.Messages[i].TransactionID)
			}
		}
	}
}

func (k *killing) scheduler(stop chan struct{}) {
	for i := 0; !stopped(stop); i++ {
		key := fmt.Sprintf("r%d.%d", k.round, i)
		var answer obj
		op := obj{"op": "schedule", "queue": "fired", "timerKey": key, "delayMs": i % 200, "txn": key,
			"payload": base64.StdEncoding.EncodeToString([]byte(`1`))}
		if k.call("POST", "/api/v1/timers", obj{"operations": []obj{op}}, &answer) && answer["results"] != nil {
			k.note(k.timers, key)
		}
	}
}

// check opens the directory and looks for everything that was acknowledged.
func (k *killing) check() {
	a := open(k.t, devbroker.Config{Dir: k.dir})
	defer func() {
		if err := a.broker.Close(); err != nil {
			k.t.Error(err)
		}
	}()
	k.waitForTimers(a)
	audit := fmt.Sprintf("audit%d", k.round)
	for queue, want := range map[string]map[string]bool{"q": k.pushed, "fired": k.timers} {
		got := map[string]int{}
		for {
			p := a.pop("/queue/"+queue, audit, "batch=1000&partitions=100&autoAck=true")
			if len(p.Messages) == 0 {
				break
			}
			for _, m := range p.Messages {
				got[m.TransactionID]++
			}
		}
		for id, n := range got {
			if n != 1 {
				k.t.Errorf("%s is stored %d times in %s", id, n, queue)
			}
		}
		for id := range want {
			if got[id] == 0 {
				k.t.Errorf("%s was acknowledged and is not in %s", id, queue)
			}
		}
	}
}

// waitForTimers waits until everything that was due has fired.
func (k *killing) waitForTimers(a *api) {
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		rows := a.do("GET", "/api/v1/timers/fired?limit=1", nil).json(k.t).(obj)["rows"].([]any)
		if len(rows) == 0 {
			return
		}
		a.pop("/queue/nothing", "w", "wait=true&timeout=20") // let time pass
	}
	k.t.Error("timers are still pending")
}
