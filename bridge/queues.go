package bridge

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"hash/fnv"
	"strconv"
	"strings"
	"time"
)

// This file is the only place that names queues, partitions, groups, timer
// keys and ids (design.md, "The event in the queue").

// KVNamespace is the KV namespace of everything the bridge stores.
const KVNamespace = "queenbridge"

// Lanes of the queues the bridge makes for a route.
const (
	RetryLanes = 64
	DeadLanes  = 16
	LargeLanes = 16
)

// AckHorizon is how long the retry queue keeps transaction ids: dedup window
// and completed retention. Queen 1.x forgets the id of a message that long
// after its push, pending or not (measured 1.3.0).
const AckHorizon = 6 * time.Hour

// LargeGrace is how long the large queue keeps a payload beyond the max_age of
// its route: a retry that was delayed by an outage or a pause still finds it.
const LargeGrace = 30 * 24 * time.Hour

// DeadAckHorizon is AckHorizon of the dead queue.
const DeadAckHorizon = 30 * 24 * time.Hour

// Namespaces of the retry, dead and large queues; the task is the route. Queen
// derives both from the first two dotted parts of a name, so a discovery pop
// of (RetryNamespace, route) yields one route's retries.
const (
	RetryNamespace = "queenbridge-retry"
	DeadNamespace  = "queenbridge-dead"
	LargeNamespace = "queenbridge-large"
)

// RetryQueue is the queue a route's retries fire into.
func RetryQueue(route string) string { return RetryNamespace + "." + route }

// DeadQueue is the queue a route's dead letters pass through.
func DeadQueue(route string) string { return DeadNamespace + "." + route }

// RouteOfQueue is the route that a retry or dead queue belongs to.
func RouteOfQueue(queue string) (route string, ok bool) {
	for _, namespace := range []string{RetryNamespace, DeadNamespace} {
		if route, ok := strings.CutPrefix(queue, namespace+"."); ok && route != "" {
			return route, true
		}
	}
	return "", false
}

// LargeQueue keeps the payloads of a route's claim checks.
func LargeQueue(route string) string { return LargeNamespace + "." + route }

// AwakeQueue holds the one far timer that keeps Queen's sweeper awake
// (1.x before 1.5.2 fires up to 28 s late on an idle broker: measured 1.3.0).
const AwakeQueue = "queenbridge-awake"

// AwakeKey is that timer's key.
const AwakeKey = "awake"

// QuarantineQueue receives what a source with on_invalid: quarantine refuses.
func QuarantineQueue(queue string) string { return queue + ".quarantine" }

// SourceLane is the default partition of a transaction id.
func SourceLane(source, transactionID string, lanes int) string {
	return source + "." + lane(transactionID, lanes)
}

// Lanes are the names of a source's default partitions, made once. They are not
// changed, and safe for concurrent use.
type Lanes struct{ names []string }

// NewLanes names n lanes; less than one counts as one.
func NewLanes(source string, n int) Lanes {
	l := Lanes{names: make([]string, max(n, 1))}
	for i := range l.names {
		l.names[i] = source + "." + strconv.Itoa(i)
	}
	return l
}

// Of is the partition of a transaction id, as SourceLane has it.
func (l Lanes) Of(transactionID string) string {
	return l.names[laneNumber(transactionID, len(l.names))]
}

// RetryLane is the partition of a lineage in the retry queue.
func RetryLane(lineage string) string { return lane(lineage, RetryLanes) }

// DeadLane is the partition of a lineage in the dead queue.
func DeadLane(lineage string) string { return lane(lineage, DeadLanes) }

// LargeLane is the partition of a lineage in the large queue.
func LargeLane(lineage string) string { return lane(lineage, LargeLanes) }

func lane(key string, lanes int) string {
	return strconv.FormatUint(laneNumber(key, lanes), 10)
}

func laneNumber(key string, lanes int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	return h.Sum64() % uint64(max(lanes, 1))
}

// Lineage names one delivery for good: hash of route, origin queue, partition
// and message id. The transaction id alone is not unique over partitions, nor
// after the dedup window.
func Lineage(route string, o Origin) string {
	sum := digest(route, o.Queue, o.Partition, o.MessageID)
	return hex.EncodeToString(sum[:16])
}

// DeliveryID is what the function sees as webhook-id: stable over attempts,
// restarts and redrives, and over a redelivery by the provider.
func DeliveryID(route string, o Origin) string {
	sum := digest(route, o.Queue, o.Partition, o.TransactionID)
	return "dlv_" + idEncoding.EncodeToString(sum[:20])
}

// BatchID is webhook-id of a call that carries several deliveries, by their
// delivery ids in order: the same batch called again has the same id.
func BatchID(deliveries []string) string {
	sum := digest(deliveries...)
	return "bat_" + idEncoding.EncodeToString(sum[:20])
}

// idEncoding is base32 (RFC 4648 §6) in lower case.
var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// TimerKey is the key of the timer that leads a delivery to a hop.
func TimerKey(lineage string, hop int) string { return lineage + "/" + strconv.Itoa(hop) }

// SettleTxn is the transaction id of a timer or dead letter: hop and a nonce
// minted once per settle, so `duplicate` proves that this very settle
// committed.
func SettleTxn(lineage string, hop int, nonce string) string {
	return TimerKey(lineage, hop) + "/" + nonce
}

// ReplyTxn is the transaction id of a reply.
func ReplyTxn(lineage string, hop int) string { return TimerKey(lineage, hop) + "/reply" }

// RedriveTxn is the transaction id of a redriven dead letter.
func RedriveTxn(deadTxn string) string { return deadTxn + "/r" }

// AttemptKey is the KV key of a partition's attempt count (ordering:
// partition).
func AttemptKey(route, partitionID string) string { return "a/" + route + "/" + partitionID }

// RulePrefix begins the KV keys of all resources that the admin API made.
const RulePrefix = "rule/"

// RuleGenerationKey is the KV key of a value that changes with every change
// below RulePrefix: whoever reads the same version twice has read all of them.
const RuleGenerationKey = "rules"

// maxRuleName bounds the part of a name in a key: Queen takes 512 bytes, and a
// queue's name may have 255 characters of four.
const maxRuleName = 400

// RuleKey is the KV key of a resource.
func RuleKey(r Resource) string {
	name := r.Name
	if len(name) > maxRuleName {
		sum := digest(name)
		name = "sha256:" + hex.EncodeToString(sum[:])
	}
	return RulePrefix + string(r.Kind) + "/" + name
}

// RateKey is the KV key of what all processes have taken of a target's shared
// rate limit in the present window.
func RateKey(target string) string { return "rate/" + target }

// PausePrefix is the KV prefix of all that is paused.
const PausePrefix = "pause/"

// PauseKey is the KV key of a paused resource; kind is route or target.
func PauseKey(kind, name string) string { return PausePrefix + kind + "/" + name }

// ParsePauseKey is the inverse of PauseKey.
func ParsePauseKey(key string) (kind, name string, ok bool) {
	rest, ours := strings.CutPrefix(key, PausePrefix)
	kind, name, found := strings.Cut(rest, "/")
	return kind, name, ours && found && name != ""
}

// digest hashes length-prefixed parts, so no two lists of parts collide.
func digest(parts ...string) [sha256.Size]byte {
	text := make([]byte, 0, 512) // no allocation up to here: each delivery has two
	for _, p := range parts {
		text = strconv.AppendInt(text, int64(len(p)), 10)
		text = append(text, ':')
		text = append(text, p...)
	}
	return sha256.Sum256(text)
}
