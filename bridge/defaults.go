package bridge

import "time"

// The defaults of config.md. Each setDefaults runs before the fields are read;
// what is not named here defaults to the zero value.

func (c *Config) setDefaults(Node) { c.StopTimeout = 30 * time.Second }

func (l *LogConfig) setDefaults(Node) { l.Level = LevelInfo }

// DefaultQueenURL is where Queen is when nothing says so.
const DefaultQueenURL = "http://127.0.0.1:6632"

func (q *QueenConfig) setDefaults(n Node) {
	q.Strategy = StrategyAffinity
	if n.Member("embedded").Text == "" {
		q.URLs = []string{DefaultQueenURL}
	}
}

func (i *IngressConfig) setDefaults(Node) {
	i.Addr = ":8080"
	i.MaxInFlight = 1024
	i.EnqueueTimeout = 5 * time.Second
}

func (b *BatchConfig) setDefaults(Node) {
	b.MaxItems = 100
	b.MaxBytes = 4 << 20
	b.MaxPending = 400
}

func (s *SpoolConfig) setDefaults(Node) { s.MaxBytes = 1 << 30 }

func (d *DispatchConfig) setDefaults(Node) { d.MaxInFlight = 256 }

func (a *AdminConfig) setDefaults(Node) {
	a.Addr = "127.0.0.1:8081"
	a.Console = true
}

func (s *Source) setDefaults(n Node) {
	s.Queue = n.Member("name").Text
	s.Lanes = 16
	s.Payload = PayloadEvent
	s.Methods = []string{"POST"}
	s.OnInvalid = OnInvalidReject
	s.Dedup = DedupStrict
}

func (t *Target) setDefaults(Node) {
	t.Auth.Type = AuthNone
	t.Concurrency = 50
}

func (h *HTTPTarget) setDefaults(Node) {
	h.Method = "POST"
	h.Timeout = 30 * time.Second
}

func (l *LambdaTarget) setDefaults(Node) {
	l.Invoke = InvokeRequestResponse
	l.Payload = LambdaSQS
	l.Timeout = time.Minute
}

func (s *TargetSigning) setDefaults(Node) { s.Scheme = SigningV1 }

func (n *Network) setDefaults(Node) { n.Profile = ProfileInternal }

func (b *Breaker) setDefaults(Node) {
	b.Enabled = true
	b.Failures = 10
	b.Open = 10 * time.Second
	b.MaxOpen = 5 * time.Minute
}

func (r *Route) setDefaults(n Node) {
	r.Group = n.Member("name").Text
	r.Subscribe = SubscribeAll
	r.Ordering = OrderingNone
	r.DetachAfter = 2 * time.Second
	r.Format = FormatPassthrough
	r.Outcomes.Success = []string{"2xx"}
	r.OnExhausted = OnExhaustedDeadLetter
	r.Retry = defaultRetry(Ordering(n.Member("ordering").Text))
}

// defaultRetry is the retry policy of a route that names none. An event that
// holds its partition is tried again sooner, and given up sooner.
func defaultRetry(o Ordering) RetryPolicy {
	if o == OrderingPartition {
		return RetryPolicy{
			MaxAttempts: 100, MaxAge: time.Hour, Jitter: JitterEqual,
			Backoff: []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
				16 * time.Second, 32 * time.Second, time.Minute},
		}
	}
	return RetryPolicy{
		MaxAttempts: 12, MaxAge: 24 * time.Hour, Jitter: JitterEqual,
		Backoff: []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute,
			30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour},
	}
}

func (b *RouteBatch) setDefaults(Node) { b.Size = 1 }

func (q *Queue) setDefaults(Node) {
	q.Lease = time.Minute
	q.Retention = defaultRetention
}

// defaultRetention is that of queues that no entry of queues is about, too.
const defaultRetention = 168 * time.Hour
