package devbroker

import (
	"strconv"
	"strings"
	"time"
)

// options are a queue's settings (queen-contract.md §2.1), as configure echoes
// them. Those without a note in doc.go take effect.
type options struct {
	LeaseTime          int64 // seconds
	RetryLimit         int64
	RetryDelay         int64 // milliseconds; no effect in any Queen
	DeadLetterQueue    bool
	DLQAfterMaxRetries bool
	DelayedProcessing  int64 // seconds
	WindowBuffer       int64
	MinPopWaitTime     int64
	DedupWindow        int64 // seconds
	RetentionEnabled   bool
	Retention          int64 // seconds
	CompletedRetention int64 // seconds
	MaxWaitTime        int64 // seconds
	Encryption         bool
	Priority           int64
	TTL                int64
	MaxSize            int64
}

// defaultOptions are what configure starts from.
func defaultOptions() options {
	return options{
		LeaseTime: 300, RetryLimit: 3, RetryDelay: 1000,
		DeadLetterQueue: true, DLQAfterMaxRetries: true,
		DedupWindow: 3600, TTL: 3600,
	}
}

// implicitOptions are those of a queue that a push, pop or timer made.
func implicitOptions() options {
	o := defaultOptions()
	o.LeaseTime = 60
	return o
}

func (o *options) numbers() map[string]*int64 {
	return map[string]*int64{
		"leaseTime": &o.LeaseTime, "retryLimit": &o.RetryLimit, "retryDelay": &o.RetryDelay,
		"delayedProcessing": &o.DelayedProcessing, "windowBuffer": &o.WindowBuffer,
		"minPopWaitTime": &o.MinPopWaitTime, "dedupWindowSeconds": &o.DedupWindow,
		"retentionSeconds": &o.Retention, "completedRetentionSeconds": &o.CompletedRetention,
		"maxWaitTimeSeconds": &o.MaxWaitTime, "priority": &o.Priority, "ttl": &o.TTL, "maxSize": &o.MaxSize,
	}
}

func (o *options) flags() map[string]*bool {
	return map[string]*bool{
		"deadLetterQueue": &o.DeadLetterQueue, "dlqAfterMaxRetries": &o.DLQAfterMaxRetries,
		"retentionEnabled": &o.RetentionEnabled, "encryptionEnabled": &o.Encryption,
	}
}

// set takes one option from its JSON text. Numbers may come as strings
// (measured 1.3.0); ok is false for a wrong type, which 1.3.0 answers with
// 500. An unknown name is ignored.
func (o *options) set(name, value string) (ok bool) {
	if len(value) > 1 && value[0] == '"' {
		value = value[1 : len(value)-1]
	}
	if flag := o.flags()[name]; flag != nil {
		*flag, ok = truth(value)
		return ok
	}
	number := o.numbers()[name]
	if number == nil {
		return true
	}
	n, err := strconv.ParseInt(value, 10, 32) // PostgreSQL's integer
	if err != nil {
		return false
	}
	*number = n
	o.DedupWindow = max(o.DedupWindow, 0)
	return true
}

// truth reads a boolean the way PostgreSQL does.
func truth(word string) (value, ok bool) {
	switch strings.ToLower(word) {
	case "true", "t", "yes", "y", "on", "1":
		return true, true
	case "false", "f", "no", "n", "off", "0":
		return false, true
	}
	return false, false
}

func (o *options) json() string {
	var out jsonObject
	out.num("ttl", o.TTL).num("maxSize", o.MaxSize).num("priority", o.Priority)
	out.num("leaseTime", o.LeaseTime).num("retryDelay", o.RetryDelay).num("retryLimit", o.RetryLimit)
	out.num("windowBuffer", o.WindowBuffer).num("minPopWaitTime", o.MinPopWaitTime)
	out.flag("deadLetterQueue", o.DeadLetterQueue).flag("retentionEnabled", o.RetentionEnabled)
	out.num("retentionSeconds", o.Retention).num("delayedProcessing", o.DelayedProcessing)
	out.flag("encryptionEnabled", o.Encryption).num("dedupWindowSeconds", o.DedupWindow)
	out.flag("dlqAfterMaxRetries", o.DLQAfterMaxRetries).num("maxWaitTimeSeconds", o.MaxWaitTime)
	out.num("completedRetentionSeconds", o.CompletedRetention)
	return string(out.bytes())
}

// fallbackLease is the lease where neither the pop nor the queue names one.
const fallbackLease = 60 * time.Second

// lease is the lease of a pop that asked for seconds; none or less is none.
func (o *options) lease(seconds int64) time.Duration {
	for _, s := range []int64{seconds, o.LeaseTime} {
		if s > 0 {
			return time.Duration(min(s, maxLeaseSeconds)) * time.Second
		}
	}
	return fallbackLease
}

// maxLeaseSeconds keeps times inside int64 microseconds; 1.3.0 has no cap
// (63 years were accepted).
const maxLeaseSeconds = 100 * 365 * 24 * 3600

func (o *options) deadLetters() bool { return o.DeadLetterQueue || o.DLQAfterMaxRetries }

func (o *options) dedupWindow() time.Duration { return time.Duration(o.DedupWindow) * time.Second }

// idMemory is how long 1.x remembers ids (queen-contract.md §5.2).
func (o *options) idMemory() time.Duration {
	return max(o.dedupWindow(), time.Duration(o.CompletedRetention)*time.Second, 900*time.Second)
}
