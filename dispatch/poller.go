package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
)

// Bounds of pops.
const (
	popWait       = 30 * time.Second
	proveWait     = time.Second // after a failure: an empty answer soon proves that Queen is back
	popPartitions = 32          // 2.x takes at most 64
	popBytes      = 32 << 20    // aimed at: what one pop may hold in memory
	maxHelpers    = 8
	orderedBatch  = 50 // ordering partition: called one after the other
	suspectFor    = 2 * leaseNone
	// lastAnswer is how long a pop under way is still listened to when its feed
	// stops: many times what Queen needs to answer it where there is something.
	lastAnswer = 250 * time.Millisecond
)

// feed pops one queue for a route: one long poll while there is little to do,
// helpers beside it while pops come back full.
type feed struct {
	r     *route
	queue string
	// base holds what is the same for every pop.
	base queen.PopRequest
	// plan is what to ask for; it waits until there is room. With reserve, or
	// where it had to wait, that is reserved.
	plan func(ctx context.Context, reserve bool) (planned, error)
	// take begins on what was popped; ctx ends when the feed is stopped.
	take func(ctx context.Context, p queen.Popped)
	// seldom is set for a queue that is empty most of the time.
	seldom *seldom

	helpers  atomic.Int32
	average  atomic.Int64 // bytes of a message, recent
	suspect  atomic.Int64 // until when pops ask for single messages: unix nanoseconds
	rescuing rescues
}

// planned is what a pop asks for, and the room reserved for it.
type planned struct{ batch, partitions, slots int }

// run pops until ctx ends.
func (f *feed) run(ctx context.Context) {
	defer f.ended()
	pause, rest := backoff{}, f.r.d.firstRest()
	for failed := false; ctx.Err() == nil; {
		full, err := f.turn(ctx, f.next(ctx, failed, rest))
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.failed(ctx, err)
			if sleep(ctx, pause.next(queen.RetryAfter(err))) != nil {
				return
			}
			failed = true
			continue
		case full && f.helpers.Load() < maxHelpers:
			f.helpers.Add(1)
			f.r.spawnFeed(func() { f.help(ctx) })
		}
		pause, failed, rest = backoff{}, false, f.r.d.rest()
	}
}

// next waits for the next pop, and returns how long that waits in Queen. After
// a failure a long poll would leave the trouble standing until it ends.
func (f *feed) next(ctx context.Context, failed bool, rest time.Duration) time.Duration {
	switch {
	case failed:
		return proveWait
	case f.seldom == nil || f.r.d.rest() == 0:
		return popWait
	}
	return f.seldom.await(ctx, rest)
}

// help pops as long as that yields full batches.
func (f *feed) help(ctx context.Context) {
	defer f.helpers.Add(-1)
	for ctx.Err() == nil {
		if full, err := f.turn(ctx, 0); err != nil || !full {
			return
		}
	}
}

// turn pops once. full says that more is likely to be had.
func (f *feed) turn(ctx context.Context, wait time.Duration) (full bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			f.r.log.Error("panic while popping", slog.String(keyQueue, f.queue), slog.Any(keyError, p), stack())
			full, err = false, errors.New("the bridge panicked")
		}
	}()
	if freed := f.r.status.blockedUntil(); freed != nil {
		return false, sleepOr(ctx, popWait, freed)
	}
	req := f.base
	// A long poll reserves no room, or idle routes would hold it; helpers do,
	// or they would ask for the same room.
	plan, err := f.plan(ctx, wait == 0)
	if err != nil {
		return false, err
	}
	defer f.giveBack(&plan) // once what was popped has taken its own
	req.Batch, req.Partitions, req.Wait = plan.batch, plan.partitions, wait
	f.narrow(&req)
	popped, err := f.pop(ctx, req, &plan)
	if err != nil {
		f.giveBack(&plan)
		return false, f.unread(ctx, err)
	}
	f.recovered()
	if len(popped.Messages) > 0 || wait > 0 { // else others may have leased what is there
		f.age(popped.Messages)
	}
	if len(popped.Messages) == 0 {
		return false, f.idle(ctx, popped.Asked, wait)
	}
	f.observe(popped.Messages)
	if f.seldom != nil { // more may be behind it
		f.seldom.expect(time.Now())
	}
	if rest := f.isolate(ctx, popped); len(rest.Messages) > 0 {
		f.take(ctx, rest)
	}
	return len(popped.Messages) >= req.Batch || partitionsOf(popped.Messages) >= req.Partitions, nil
}

// pop pops. What room is reserved is kept for an answer at once: nothing is
// reserved while Queen waits.
func (f *feed) pop(ctx context.Context, req queen.PopRequest, p *planned) (queen.Popped, error) {
	within, cancel := listening(ctx, min(lastAnswer, f.r.d.stopTimeout/10))
	defer cancel()
	if p.slots > 0 {
		now := req
		now.Wait = 0
		popped, err := f.r.d.queen.Pop(within, now)
		if err != nil || len(popped.Messages) > 0 || req.Wait == 0 || ctx.Err() != nil {
			return popped, err
		}
		f.giveBack(p)
	}
	return f.r.d.queen.Pop(within, req)
}

// listening ends a while after ctx does. Where a feed stops, the answer to its
// pop may be on its way: what it leased would come again only when that lease
// runs out, so it is awaited for a moment, and given back.
func listening(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(after, cancel) })
	return longer, func() { stop(); cancel() }
}

// giveBack gives back the room that is reserved, if any.
func (f *feed) giveBack(p *planned) {
	if p.slots > 0 {
		f.r.d.limiter.expect(f.r.claim, -p.slots)
		p.slots = 0
	}
}

// narrow keeps a pop small where messages are large or one of them is suspect.
func (f *feed) narrow(req *queen.PopRequest) {
	if avg := f.average.Load(); avg > 0 {
		req.Batch = max(1, min(req.Batch, int(popBytes/avg)))
	}
	if time.Now().UnixNano() < f.suspect.Load() {
		req.Batch, req.Partitions = 1, 1
	}
}

func (f *feed) observe(messages []queen.Message) {
	bytes := 0
	for i := range messages {
		bytes += len(messages[i].Data)
	}
	f.average.Store((f.average.Load() + int64(bytes/len(messages))) / 2)
	f.r.m.popped.Add(float64(len(messages)))
}

// age tells how long the oldest event has waited, for the queue the route names.
func (f *feed) age(messages []queen.Message) {
	if f != f.r.source.feed {
		return
	}
	oldest, now := time.Duration(0), time.Now()
	for i := range messages {
		oldest = max(oldest, now.Sub(messages[i].CreatedAt))
	}
	f.r.m.oldest.Set(oldest.Seconds())
}

func partitionsOf(messages []queen.Message) int {
	n := 1
	for i := 1; i < len(messages); i++ {
		if messages[i].PartitionID != messages[i-1].PartitionID {
			n++
		}
	}
	return n
}

// idle slows down a poll that came back empty too soon: 2.x does not wait in
// discovery, and a broker may refuse to wait.
func (f *feed) idle(ctx context.Context, asked time.Time, wait time.Duration) error {
	if wait > 0 && time.Since(asked) < wait/2 {
		_ = sleep(ctx, jitter(500*time.Millisecond))
	}
	return nil
}

// failed notes a failed pop, and says so once; of an outage only the first
// feeds do, or a thousand routes would say the same.
func (f *feed) failed(ctx context.Context, err error) {
	before := f.r.status.failed(f.queue, err)
	level := slog.LevelWarn
	switch {
	case noAnswer(err) == before.outage && before.err != nil:
		return
	case before.outage:
		f.r.d.outage.ends()
	case noAnswer(err):
		level = f.r.d.outage.begins()
	}
	f.r.log.LogAttrs(ctx, level, "no events from queen, trying again", slog.String(keyQueue, f.queue), slog.Any(keyError, err))
}

func (f *feed) recovered() {
	before := f.r.status.recovered(f.queue)
	if before.err == nil {
		return
	}
	log, after := f.r.log.With(slog.String(keyQueue, f.queue)), time.Since(before.since)
	if before.outage {
		over, whole := f.r.d.outage.ends()
		if !over {
			log.Debug("queen answers again", slog.Duration("after", after.Round(time.Millisecond)))
			return
		}
		log, after = f.r.d.log, whole
	}
	log.Info("queen answers again", slog.Duration("after", after.Round(time.Millisecond)))
}

// ended forgets the trouble of a feed that pops no more.
func (f *feed) ended() {
	if f.r.status.recovered(f.queue).outage {
		f.r.d.outage.ends()
	}
}

// sourceFeed pops the queue the route names.
func (r *route) sourceFeed() *feed {
	mode, from := subscription(r.cfg.Subscribe)
	f := &feed{r: r, queue: r.cfg.Queue, plan: r.planBatch, take: r.taker(r.cfg.Queue)}
	f.base = queen.PopRequest{Queue: r.cfg.Queue, Group: r.group, Lease: leaseLength(r.cfg.Ordering), SubscriptionMode: mode, SubscriptionFrom: from}
	if r.cfg.Ordering == bridge.OrderingPartition {
		f.plan, f.take = r.planOrdered, r.takeOrdered
	}
	return f
}

// retryFeed pops the route's retries. Brokers whose queue-scoped pops see
// fired timers late are asked by discovery.
func (r *route) retryFeed() *feed {
	f := &feed{r: r, queue: r.retryQueue, plan: r.planRetries, take: r.taker(r.retryQueue), seldom: newSeldom()}
	f.base = queen.PopRequest{Group: r.cfg.Name, Lease: leaseNone, SubscriptionMode: "all"}
	if r.d.lateTimers {
		f.base.Namespace, f.base.Task = bridge.RetryNamespace, r.cfg.Name
	} else {
		f.base.Queue = r.retryQueue
	}
	return f
}

func (r *route) taker(queue string) func(context.Context, queen.Popped) {
	return func(ctx context.Context, p queen.Popped) { r.take(ctx, p, queue) }
}

// callsOf is how many calls so many events may fill.
func (r *route) callsOf(events int) int {
	size := max(1, r.cfg.Batch.Size)
	return (events + size - 1) / size
}

// subscription is what a group's first pop says about the events before it.
func subscription(subscribe string) (mode, from string) {
	switch subscribe {
	case "", "all":
		return "all", ""
	case "new":
		return "new", ""
	}
	return "all", subscribe // the time wins over the mode (measured 1.3.0)
}

// probeBatch bounds what is popped of retries, and of partitions, for a target
// whose breaker is half-open: one is its probe, those beyond max_age end.
const probeBatch = 64

// planBatch asks for as much as may be called soon.
func (r *route) planBatch(ctx context.Context, reserve bool) (planned, error) {
	return r.planPop(ctx, ask{most: maxBatch, reserve: reserve, probes: 1})
}

// planRetries is planBatch for the retry queue.
func (r *route) planRetries(ctx context.Context, reserve bool) (planned, error) {
	return r.planPop(ctx, ask{most: maxBatch, reserve: reserve, probes: probeBatch})
}

func (r *route) planPop(ctx context.Context, a ask) (planned, error) {
	a.most, a.probes = r.callsOf(a.most), r.callsOf(a.probes)
	calls, reserved, err := r.d.limiter.awaitRoom(ctx, r.claim, a)
	n := min(calls*max(1, r.cfg.Batch.Size), maxBatch)
	p := planned{batch: n, partitions: min(n, popPartitions)}
	if reserved {
		p.slots = calls
	}
	return p, err
}
