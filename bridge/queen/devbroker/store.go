package devbroker

// store keeps the broker's state on disk. The broker calls commit from one
// goroutine; the reading methods may run beside it and see whole commits only.
type store interface {
	// durable is false where commit and load do nothing.
	durable() bool
	// load reads everything but message bytes, ids and timer payloads.
	load() (*snapshot, error)
	// ids reads the ids of all messages, by partition and base.
	ids(row func(idRow)) error
	// commit stores one batch whole or not at all, and returns when it is on
	// disk.
	commit(*changes) error
	// segments reads stored messages of a partition in [from, to), in order,
	// and stops after about limit bytes.
	segments(part int64, from, to uint64, limit int) ([]storedSegment, error)
	// timerPayload reads the payload of a stored timer.
	timerPayload(num int64) ([]byte, error)
	close() error
}

// snapshot is what a store knew when it was opened.
type snapshot struct {
	key     hashKey
	version int64
	queues  []queueRow
	parts   []partitionRow
	groups  []groupRow
	cursors []cursorRow
	timers  []timerRow
	kv      []kvStored
	dead    []deadLetter
	traces  []trace
}

// changes is one commit: the rows as they shall be. Groups are removed before
// anything is written, the rest after.
type changes struct {
	version  int64
	queues   []queueRow
	parts    []partitionRow
	groups   []groupRow
	cursors  []cursorRow
	segments []storedSegment
	timers   []timerRow
	kv       []kvStored
	dead     []deadLetter
	traces   []trace

	noTimers []int64
	noKV     []kvKey
	noDead   []string
	noGroups []groupID
	noQueues []int64
}

type queueRow struct {
	num                       int64
	id, name, namespace, task string
	created                   micros
	opts                      options
}

type partitionRow struct {
	num, queue  int64
	id, name    string
	created     micros
	first, next uint64
	known       uint64 // ids below it need not be read again
}

type groupID struct {
	queue int64
	name  string
}

type groupRow struct {
	groupID
	all, conflates bool
	since, created micros
}

type cursorRow struct {
	part       int64
	group      string
	next       uint64
	lease      string
	until      micros
	leaseStart uint64
	leaseEnd   uint64
	conflated  bool
	retries    int64
	attempts   int64
	attemptAt  uint64
}

// storedSegment is a run of messages of one partition with their id hashes.
type storedSegment struct {
	queue  int64 // written, not read back
	part   int64
	base   uint64
	spans  []span
	hashes []uint64 // written, not read back
	blobs  [][]byte // its messages, as they are written
	blob   []byte   // and as they are read back
}

// idRow is a stored segment without its bytes.
type idRow struct {
	part   int64
	base   uint64
	spans  []span
	hashes []uint64
}

type timerRow struct {
	num                        int64
	queue, key, partition, txn string
	id                         messageID
	at                         micros
	created, modified          micros
	payload                    []byte // nil in a snapshot
	zstd                       bool
}

type kvKey struct{ namespace, key string }

type kvStored struct {
	kvKey
	value    []byte
	version  int64
	modified micros
	expires  micros // never: forever
}
