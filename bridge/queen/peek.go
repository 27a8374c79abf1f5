package queen

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"
)

// PendingTimer is a timer that has not fired, with its payload.
type PendingTimer struct {
	Timer
	DeliverAt time.Time
	// Claimed says that a broker is about to deliver it: it cannot be changed.
	Claimed bool
}

// PeekTimer reads a pending timer. found is false where nothing is pending
// under the key: never set, cancelled, or delivered already. Delay is not set.
func (c *Client) PeekTimer(ctx context.Context, queue, key string) (t PendingTimer, found bool, err error) {
	if queue == "" || key == "" {
		return t, false, errors.New("peek timer: queue and key are needed")
	}
	a, err := c.do(ctx, &call{method: "GET", path: timersPath(queue) + "/" + segments(key), safe: true})
	if err != nil {
		return t, false, err
	}
	var row struct {
		Found     *bool  `json:"found"`
		Queue     string `json:"queue"`
		TimerKey  string `json:"timerKey"`
		Partition string `json:"partition"`
		Txn       string `json:"txn"`
		Payload   string `json:"payload"`
		Zstd      bool   `json:"payloadZstd"`
		Encrypted bool   `json:"encrypted"`
		Claimed   bool   `json:"claimed"`
		DeliverAt string `json:"deliverAt"`
	}
	if err := a.decode(&row); err != nil {
		return t, false, err
	}
	switch {
	case row.Found == nil:
		return t, false, a.misfit("it does not say whether there is a timer")
	case !*row.Found:
		return t, false, nil
	case row.Queue != queue || row.TimerKey != key:
		return t, false, a.misfit("it is another timer")
	case row.Zstd || row.Encrypted:
		return t, false, errors.New("peek timer: its payload is compressed or encrypted, so it is none of the bridge's")
	}
	payload, err := base64.StdEncoding.DecodeString(row.Payload)
	if err != nil || !json.Valid(payload) {
		return t, false, a.misfit("the payload is no JSON in base64")
	}
	t.Timer = Timer{Queue: queue, Key: key, Partition: row.Partition, TransactionID: row.Txn, Payload: payload}
	t.DeliverAt, t.Claimed = wireTime(row.DeliverAt), row.Claimed
	return t, true, nil
}
