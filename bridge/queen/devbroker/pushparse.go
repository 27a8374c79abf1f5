package devbroker

import (
	"fmt"
)

// pushItem is one item of a push; its bytes alias the request.
type pushItem struct {
	queue, partition, txn []byte
	payload               []byte
	trace                 string
	minted                bool // no transaction id came with it
}

// Name limits (measured 1.3.0): a longer queue name is answered buffered and
// lost, a longer transaction id is 400.
const (
	maxQueueName = 255
	maxTxn       = 65535
)

var defaultPartitionName = []byte(defaultPartition)

// parsePush reads the body of a push.
func parsePush(body []byte) ([]pushItem, error) {
	s, err := scan(body)
	if err != nil {
		return nil, err
	}
	// 96 bytes is about the shortest item a client sends.
	items := make([]pushItem, 0, min(len(body)/96+1, 1024))
	var seen once
	err = s.object(func(key []byte) error {
		if err := seen.key(s, key, "items"); err != nil {
			return err
		}
		if string(key) != "items" {
			_, err := s.raw()
			return err
		}
		return s.array(func() error {
			it, err := parsePushItem(s)
			if err == nil && len(it.txn) > maxTxn {
				err = fmt.Errorf("transactionId of item %d exceeds the %d-byte limit", len(items), maxTxn)
			}
			items = append(items, it)
			return err
		})
	})
	if err == nil && seen == 0 {
		err = s.fail("missing field `items`")
	}
	if err != nil {
		return nil, err
	}
	return items, s.end()
}

// parsePushItem reads one item.
func parsePushItem(s *scanner) (it pushItem, err error) {
	it.minted = true
	var seen once
	err = s.object(func(key []byte) (err error) {
		if err := seen.key(s, key, "queue", "partition", "transactionId", "payload"); err != nil {
			return err
		}
		return it.field(s, key)
	})
	switch {
	case err != nil:
		return it, err
	case seen&1 == 0:
		return it, s.fail("missing field `queue`")
	case it.payload == nil:
		return it, s.fail("missing field `payload`")
	}
	if it.partition == nil {
		it.partition = defaultPartitionName
	}
	if control(it.queue) || control(it.partition) || control(it.txn) {
		return it, s.fail("control characters are not allowed in queue, partition or transactionId")
	}
	return it, nil
}

func (it *pushItem) field(s *scanner, key []byte) (err error) {
	switch string(key) {
	case "queue":
		it.queue, err = s.str()
	case "partition":
		if !s.null() {
			it.partition, err = s.str()
		}
	case "transactionId":
		if !s.null() {
			it.txn, err = s.str()
			it.minted = false
		}
	case "payload":
		it.payload, err = s.raw()
	default:
		_, err = s.raw()
	}
	return err
}

// control says whether a name holds a control character: DEL and C1 are none
// to a push, and a transaction push takes any (measured 1.3.0).
func control(name []byte) bool {
	for _, c := range name {
		if c < 0x20 {
			return true
		}
	}
	return false
}
