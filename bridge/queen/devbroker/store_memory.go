package devbroker

import (
	"encoding/binary"
	"errors"
)

// memoryStore keeps nothing: all the broker knows is in its state.
type memoryStore struct{}

var errNoStore = errors.New("a memory broker has no store")

func (memoryStore) durable() bool            { return false }
func (memoryStore) load() (*snapshot, error) { return newSnapshot(), nil }
func (memoryStore) ids(func(idRow)) error    { return nil }
func (memoryStore) commit(*changes) error    { return nil }
func (memoryStore) close() error             { return nil }

func (memoryStore) segments(int64, uint64, uint64, int) ([]storedSegment, error) {
	return nil, nil
}

func (memoryStore) timerPayload(int64) ([]byte, error) { return nil, errNoStore }

// newSnapshot is what a new store holds.
func newSnapshot() *snapshot {
	var key [16]byte
	fillRandom(key[:8])
	fillRandom(key[8:])
	return &snapshot{key: hashKey{binary.LittleEndian.Uint64(key[:8]), binary.LittleEndian.Uint64(key[8:])}}
}
