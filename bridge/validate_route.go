package bridge

import (
	"maps"
	"slices"
	"strings"
	"time"
)

func (c Config) checkRoutes(k checklist) {
	seen, groups := map[string]bool{}, map[[2]string]string{}
	for i, r := range c.Routes {
		at := k.below("routes[%d]", i)
		at.name("route", r.Name, seen)
		r.check(at)
		c.checkTarget(at, r.Target)
		for _, t := range c.Targets {
			if t.Name == r.Target {
				r.checkCall(at, t)
			}
		}
		key := [2]string{r.Queue, r.Group}
		if other, taken := groups[key]; taken && r.Queue != "" && r.Group != "" {
			at.fail("group", "route %q reads queue %q as the same group %q: each would lose what the other got", other, r.Queue, r.Group)
		}
		groups[key] = r.Name
	}
}

// checkTarget checks that a route's target exists. Where a target has no name
// the missing one may be it, which is reported there.
func (c Config) checkTarget(k checklist, name string) {
	var names []string
	for _, t := range c.Targets {
		if t.Name == name || t.Name == "" {
			names = nil
			if name != "" {
				return
			}
		}
		names = append(names, t.Name)
	}
	if name == "" {
		k.fail("target", "is required: the name of a target")
		return
	}
	text := "no target is called %q"
	if near := nearest(name, names); near != "" {
		k.fail("target", text+" (did you mean %q?)", name, near)
		return
	}
	k.fail("target", text+": add it to targets", name)
}

func (r Route) check(k checklist) {
	k.routeQueue("queue", r.Queue)
	if r.Name != "" || r.Group != "" { // without a name the default group is none
		k.queueName("group", r.Group)
	}
	k.subscribe("subscribe", r.Subscribe)
	k.when(r.Filter != "" && r.Pattern != nil, "pattern", "excludes filter: set one of them")
	_, isMap := r.Pattern.(map[string]any)
	k.when(r.Pattern != nil && !isMap, "pattern", "must be a map: an EventBridge event pattern")
	k.word("ordering", string(r.Ordering), orderings)
	k.notNegative("detach_after", r.DetachAfter)
	r.checkBatch(k)
	k.word("format", r.Format, formats)
	for _, p := range r.Transform.Check() {
		k.fail("transform."+p.Path, "%s", p.Text)
	}
	_, problems := NewPolicy(r)
	for _, p := range problems {
		k.fail(p.Path, "%s", p.Text)
	}
	k.word("on_exhausted", r.OnExhausted, onExhausteds)
	r.checkReply(k)
	k.between("concurrency", r.Concurrency, 0, maxConcurrency)
}

// checkReply: query: is no form of a reply's partition, an answer has none.
func (r Route) checkReply(k checklist) {
	if r.Reply.Queue != "" {
		k.foreignQueue("reply.queue", r.Reply.Queue)
		k.valueForm("reply.partition", r.Reply.Partition, FormBody, FormHeader, FormLiteral)
		if r.Reply.Queue == r.Queue && r.Filter == "" && r.Pattern == nil {
			k.warn("reply.queue", "is the queue the route reads: each reply calls the function again, for ever; set filter, such as event.source != %q", r.Name)
		}
	} else {
		k.when(r.Reply.Partition != "", "reply.partition", "has no effect without reply.queue")
		k.when(r.Reply.OnFailure, "reply.on_failure", "has no effect without reply.queue")
	}
}

// checkBatch checks what a call of several events can be.
func (r Route) checkBatch(k checklist) {
	k.between("batch.size", r.Batch.Size, 1, maxBatch)
	k.notNegative("batch.window", r.Batch.Window)
	k.when(r.Batch.Window > maxWindow, "batch.window", "must be at most %s: events keep their leases while they wait, got %s", FormatDuration(maxWindow), FormatDuration(r.Batch.Window))
	if r.Batch.Size <= 1 {
		k.when(r.Batch.Window > 0, "batch.window", "has no effect with batch.size 1: set batch.size to 2 or more")
		return
	}
	k.when(r.Batch.Window > 0 && r.Ordering == OrderingPartition, "batch.window",
		"must be 0s with ordering: partition: a batch is what its partition holds, and no more of it can come while it waits")
	k.when(r.Format == FormatCloudEventsBinary || r.Format == FormatCloudEventsStructured, "format",
		"%s carries one event: set batch.size to 1, or format to %s", r.Format, FormatCloudEventsBatch)
	k.when(r.Retry.MaxAttempts == 1, "retry.max_attempts",
		"must be 2 or more with batch.size above 1: after a batch failed each event needs an attempt of its own, or one would end for the fault of another")
	k.when(r.Reply.Queue != "", "reply.queue", "needs batch.size 1: the answer to a batch is no reply to one event")
}

// checkCall checks what a route asks of the kind of its target.
func (r Route) checkCall(k checklist, t Target) {
	for _, name := range slices.Sorted(maps.Keys(r.Transform.Headers)) {
		k.when(!r.carriesHeader(name, t), "transform.headers."+name, "has no effect: headers of events go with batch.size 1 and "+
			"format passthrough or cloudevents-binary, and as attributes with format or payload sqs")
	}
	if t.Lambda == nil {
		return
	}
	k.when(r.Format != "" && r.Format != FormatPassthrough && slices.Contains(formats, r.Format), "format",
		"is for HTTP targets: leave it out and set lambda.payload of target %q (sqs, raw or cloudevents)", t.Name)
	k.when(r.ReportItemFailures && t.Lambda.Invoke == InvokeEvent, "report_item_failures",
		"has no effect on target %q: an asynchronous invoke has no answer; set its lambda.invoke to request_response", t.Name)
	k.when(r.Reply.Queue != "" && t.Lambda.Invoke == InvokeEvent, "reply.queue",
		"gets nothing of target %q: an asynchronous invoke has no answer; set its lambda.invoke to request_response", t.Name)
}

// carriesHeader says that a header of the event reaches the function; its
// content type also as an attribute of a CloudEvent.
func (r Route) carriesHeader(name string, t Target) bool {
	ofEvent := strings.EqualFold(name, "content-type")
	if t.Lambda != nil {
		return t.Lambda.Payload != LambdaRaw && (ofEvent || t.Lambda.Payload != LambdaCloudEvents)
	}
	switch r.Format {
	case FormatSQS, FormatCloudEventsBinary:
		return true
	case FormatCloudEventsStructured, FormatCloudEventsBatch:
		return ofEvent
	case FormatNDJSON:
		return false
	}
	return r.Batch.Size <= 1
}

// maxWindow bounds how long events are kept from being called.
const maxWindow = 5 * time.Minute

// maxBatch is the most one pop takes: one partition may fill it, and a settle
// takes 256 timers (design.md, "Dispatch, one batch").
const maxBatch = 256

// routeQueue checks the queue of a route. Another route's dead letters may be
// read, by a group of their own; its retries may not.
func (c checklist) routeQueue(field, name string) {
	if strings.HasPrefix(name, DeadNamespace+".") {
		c.queueName(field, name)
		return
	}
	c.foreignQueue(field, name)
}

func (c checklist) subscribe(field, value string) {
	if value == SubscribeAll || value == SubscribeNew {
		return
	}
	_, err := time.Parse(time.RFC3339, value)
	c.when(err != nil, field, "must be all, new or an RFC 3339 time such as 2026-01-02T15:04:05Z, got %q", value)
}
