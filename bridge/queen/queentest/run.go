package queentest

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

// Broker is a broker under test. Its queues must be nobody else's.
type Broker struct {
	// URL is where it listens.
	URL string
	// Transport reaches it. Nil: over the network.
	Transport http.RoundTripper
	// Generation of Queen whose rules it follows: 1, measured on 1.3.0, or 2,
	// documented only. Defaults to 1.
	Generation int
	// Except names cases that do not hold for it, each with the reason. They
	// are listed as skipped. A name that is no case fails the run.
	Except map[string]string
}

// testCase is one rule and its check.
type testCase struct {
	name string
	rule string // where it stands
	run  func(k *kit)
	// alone marks a case that disturbs others.
	alone bool
	// only is the generation it is about, where the two differ. 0: both.
	only int
}

func allCases() []testCase {
	return slices.Concat(healthCases(), errorCases(), pushCases(), payloadCases(), popCases(), wakeCases(), subscriptionCases(),
		ackCases(), nackCases(), leaseCases(), transactionCases(), rollbackCases(), repeatCases(), timerCases(), fireCases(),
		zstdCases(), conflationCases(), kvCases(), deadLetterCases(), queueCases(), groupCases(), traceCases(), rateCases(), detailCases(), generation2Cases())
}

// casesOf are the cases of a generation.
func casesOf(generation int) []testCase {
	return slices.DeleteFunc(allCases(), func(c testCase) bool { return c.only != 0 && c.only != generation })
}

// Run checks a broker. newBroker is called once; what it starts must live
// until the test ends.
func Run(t *testing.T, newBroker func(t *testing.T) Broker) {
	b := newBroker(t)
	cases := casesOf(max(b.Generation, 1))
	checkExceptions(t, b, cases)
	s := newSuite(t, b)
	t.Run("rules", func(t *testing.T) {
		for _, c := range cases {
			if !c.alone {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					s.run(t, c)
				})
			}
		}
	})
	for _, c := range cases {
		if c.alone {
			t.Run("alone/"+c.name, func(t *testing.T) { s.run(t, c) })
		}
	}
}

func checkExceptions(t *testing.T, b Broker, cases []testCase) {
	for name := range b.Except {
		if !slices.ContainsFunc(cases, func(c testCase) bool { return c.name == name }) {
			t.Errorf("exception %q is no case", name)
		}
	}
}

// suite is what the cases share.
type suite struct {
	broker Broker
	client *queen.Client // patient over rate limits
	http   http.RoundTripper
	bare   http.RoundTripper
}

func newSuite(t *testing.T, b Broker) *suite {
	bare := b.Transport
	if bare == nil {
		own := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
		t.Cleanup(own.CloseIdleConnections)
		bare = own
	}
	patient := &patientTransport{bare}
	c, err := queen.New(queen.Config{URLs: []string{b.URL}, Transport: patient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s := &suite{broker: b, client: c, http: patient, bare: bare}
	s.keepAwake(t)
	return s
}

// keepAwake keeps one far timer pending, and waits until one that is due has
// fired: an idle 1.3.0 fires up to 28 s late, and the far timer keeps its
// sweeper awake but does not wake it (queen-contract.md §9.1).
func (s *suite) keepAwake(t *testing.T) {
	t.Helper()
	queue := unique("awake")
	timer := func(key string, delay time.Duration) queen.Timer {
		return queen.Timer{Queue: queue, Key: key, Partition: "p", Delay: delay, TransactionID: key, Payload: []byte(`0`)}
	}
	if _, err := s.client.Schedule(t.Context(), []queen.Timer{timer("far", 24*time.Hour), timer("due", 0)}); err != nil {
		t.Fatalf("keep the sweeper awake: %v", err)
	}
	p, err := s.client.Pop(t.Context(), request(queue, pinned("p"), waiting(40*time.Second)))
	if err != nil || len(p.Messages) != 1 {
		t.Fatalf("no timer fired within 40 s: %v", err)
	}
}

// lateTries is how often in a row a case must measure what is too late: a busy
// machine makes one late now and then, a broker each time.
const lateTries = 3

func (s *suite) run(t *testing.T, c testCase) {
	if reason, ok := s.broker.Except[c.name]; ok {
		t.Skipf("%s: does not hold for this broker: %s", c.rule, reason)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the rule stands in %s", c.rule)
		}
	})
	for try := 1; ; try++ {
		k := &kit{T: t, suite: s}
		switch c.run(k); {
		case len(k.late) == 0:
			return
		case try == lateTries:
			t.Errorf("%d times in a row: %s", try, strings.Join(k.late, "; "))
			return
		}
		t.Logf("late, measured again: %s", strings.Join(k.late, "; "))
	}
}
