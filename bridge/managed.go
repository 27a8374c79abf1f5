package bridge

import (
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/signing"
)

// managedRetryLimit is Queen's own count of failed acks before it dead-letters
// by itself. It counts per partition and group, not per message, so it is only
// the last stop of a crash loop (dispatch.md §0).
const managedRetryLimit = 1_000_000

// minDedupWindow is the least default dedup window of a source's queue.
const minDedupWindow = time.Hour

// ManagedQueue is the full set of options of a queue the bridge configures.
// Configuring replaces them all, namespace and task included, which Queen
// would else derive from the name (1.x before 1.6: measured 1.3.0).
type ManagedQueue struct {
	Name      string
	Namespace string
	Task      string
	// Lease of consumers that ask for none.
	Lease      time.Duration
	RetryLimit int
	// DedupWindow is how long a transaction id is remembered.
	DedupWindow time.Duration
	// Retention bounds the age of everything. 0 means no bound.
	Retention time.Duration
	// CompletedRetention bounds the age of what every group consumed. Queen
	// 1.x knows the ids of messages only as long as this or DedupWindow, the
	// longer of both (design.md, "Old events").
	CompletedRetention time.Duration
}

// ManagedQueues are the queues the bridge configures at start: those its
// sources feed and those listed under queues, in that order, then each route's
// retry, dead and large queue. A queue that only a route reads belongs to somebody
// else and is left alone.
func (c Config) ManagedQueues() []ManagedQueue {
	var all []ManagedQueue
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			all = append(all, c.managed(name))
		}
	}
	for _, s := range c.Sources {
		add(s.Queue)
	}
	for _, q := range c.Queues {
		add(q.Name)
	}
	for _, r := range c.Routes {
		all = append(all, r.retryQueue(), r.deadQueue(), r.largeQueue())
	}
	return all
}

// managed are the options of a queue of events.
func (c Config) managed(name string) ManagedQueue {
	q := c.queue(name)
	namespace, task := derivedNames(name)
	return ManagedQueue{
		Name: name, Namespace: namespace, Task: task,
		Lease: q.Lease, RetryLimit: managedRetryLimit,
		DedupWindow: q.DedupWindow, Retention: q.Retention, CompletedRetention: q.CompletedRetention,
	}
}

// queue is what the configuration says about a queue, nothing left open.
func (c Config) queue(name string) Queue {
	q := Queue{Name: name}
	q.setDefaults(Node{})
	for _, listed := range c.Queues {
		if listed.Name == name {
			q = listed
		}
	}
	return c.resolved(q)
}

// resolved fills in the options whose 0 stands for another value.
func (c Config) resolved(q Queue) Queue {
	if q.CompletedRetention == 0 {
		q.CompletedRetention = q.Retention
	}
	if q.DedupWindow == 0 {
		horizon, _ := c.horizon(q.Name)
		q.DedupWindow = max(horizon, minDedupWindow)
	}
	return q
}

// horizon is the longest time in which a source that feeds the queue may
// resend an event, and that source.
func (c Config) horizon(queue string) (longest time.Duration, source string) {
	for _, s := range c.Sources {
		preset, ok := signing.Lookup(s.Scheme)
		if ok && s.Queue == queue && preset.Horizon > longest {
			longest, source = preset.Horizon, s.Name
		}
	}
	return longest, source
}

// derivedNames are what Queen makes of a queue name by itself: the first two
// dotted parts (measured 1.3.0).
func derivedNames(queue string) (namespace, task string) {
	namespace, rest, _ := strings.Cut(queue, ".")
	task, _, _ = strings.Cut(rest, ".")
	return namespace, task
}

func (r Route) retryQueue() ManagedQueue {
	return ManagedQueue{
		Name: RetryQueue(r.Name), Namespace: RetryNamespace, Task: r.Name,
		Lease: time.Minute, RetryLimit: managedRetryLimit,
		DedupWindow: AckHorizon, CompletedRetention: AckHorizon,
	}
}

func (r Route) deadQueue() ManagedQueue {
	return ManagedQueue{
		Name: DeadQueue(r.Name), Namespace: DeadNamespace, Task: r.Name,
		Lease: time.Minute, RetryLimit: managedRetryLimit,
		DedupWindow: DeadAckHorizon, CompletedRetention: DeadAckHorizon,
	}
}

// largeQueue ends by age alone: nobody consumes it.
func (r Route) largeQueue() ManagedQueue {
	return ManagedQueue{
		Name: LargeQueue(r.Name), Namespace: LargeNamespace, Task: r.Name,
		Lease: time.Minute, RetryLimit: managedRetryLimit,
		DedupWindow: AckHorizon, Retention: r.Retry.MaxAge + LargeGrace,
	}
}
