package queen_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func TestGroupPartitions(t *testing.T) {
	t.Parallel()
	c, b := answering(t, 200, `{"other":{"partitions":[]},"q":{"conflation":false,"partitions":[`+
		`{"workerId":null,"offsetLag":3,"partition":"a b","leaseActive":true,"totalConsumed":1,"lastConsumedAt":null,"timeLagSeconds":90},`+
		`{"workerId":"w","offsetLag":0,"partition":"c","leaseActive":false,"totalConsumed":1,"lastConsumedAt":null,"timeLagSeconds":0}]}}`)
	got, err := c.GroupPartitions(t.Context(), "a/group", "q")
	want := []queen.GroupPartition{{Partition: "a b", Pending: 3, Behind: 90 * time.Second, Leased: true}, {Partition: "c"}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("GroupPartitions error %v (-want +got):\n%s", err, d)
	}
	if uri := b.last(t).uri; uri != "/api/v1/consumer-groups/a%2Fgroup" {
		t.Errorf("asked %s", uri)
	}
	if got, err := c.GroupPartitions(t.Context(), "g", "none"); err != nil || len(got) != 0 {
		t.Errorf("GroupPartitions of an unknown queue = %v, %v", got, err)
	}
	if _, err := c.GroupPartitions(t.Context(), "", "q"); err == nil || queen.Uncertain(err) {
		t.Errorf("GroupPartitions of no group: %v", err)
	}
	for _, body := range []string{`[]`, `{"q":{}}`, `{"q":{"partitions":[{}]}}`, `{"q":{"partitions":[{"partition":"a","offsetLag":1,"timeLagSeconds":1}]}}`} {
		c, _ := answering(t, 200, body)
		if got, err := c.GroupPartitions(t.Context(), "g", "q"); err == nil {
			t.Errorf("GroupPartitions answered %s = %v", body, got)
		}
	}
}

func TestSeek(t *testing.T) {
	t.Parallel()
	c, b := answering(t, 200, `{"success":true,"queueName":"q.a","consumerGroup":"g","seekToEnd":false,"targetTimestamp":"2026-01-02T14:04:05.000Z","partitionsUpdated":1}`)
	at := time.Date(2026, 1, 2, 15, 4, 5, 678901000, time.FixedZone("", 3600))
	if err := c.Seek(t.Context(), queen.SeekRequest{Queue: "q.a", Group: "g", Partition: "p/1", At: at}); err != nil {
		t.Fatal(err)
	}
	if got := b.last(t); got.uri != "/api/v1/consumer-groups/g/queues/q.a/partitions/p%2F1/seek" || got.body != `{"timestamp":"2026-01-02T14:04:05.678901Z"}` {
		t.Errorf("sent %s %s", got.uri, got.body)
	}
	if err := c.Seek(t.Context(), queen.SeekRequest{Queue: "q.a", Group: "g", At: at}); err != nil || b.last(t).uri != "/api/v1/consumer-groups/g/queues/q.a/seek" {
		t.Errorf("Seek of all = %v, sent %s", err, b.last(t).uri)
	}
	if err := c.Seek(t.Context(), queen.SeekRequest{Queue: "q.b", Group: "g", At: at}); !queen.Uncertain(err) {
		t.Errorf("Seek answered for another queue: %v", err)
	}
	n := len(b.requests())
	if err := c.Seek(t.Context(), queen.SeekRequest{Queue: "q"}); err == nil || len(b.requests()) != n {
		t.Errorf("Seek of no group: %v", err)
	}
	c, _ = answering(t, 404, `{"error":"Partition not found","success":false}`)
	if err := c.Seek(t.Context(), queen.SeekRequest{Queue: "q", Group: "g", Partition: "p", At: at}); !errors.Is(err, queen.ErrNotFound) {
		t.Errorf("Seek of an unknown partition: %v", err)
	}
}
