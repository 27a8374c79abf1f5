package queen_test

import (
	"errors"
	"testing"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func TestMessage(t *testing.T) {
	t.Parallel()
	c, b := replaying(t, "messages", "message by id, dead letter")
	const partition = "ae497e84-fccf-4c0f-822a-2c3153d41dfa"
	m, err := c.Message(t.Context(), partition, "m3")
	if err != nil || m.TransactionID != "m3" || m.Partition != "p" || m.PartitionID != partition ||
		m.Queue != "t74daf-eea2a0" || m.Status != "dead_letter" || m.CreatedAt.IsZero() || m.ID == "" {
		t.Errorf("Message() = %+v %s, %v", m, m.Data, err)
	}
	sameJSON(t, "data", string(m.Data), `{"id":"m3"}`)
	if got := b.last(t).uri; got != "/api/v1/messages/"+partition+"/m3" {
		t.Errorf("asked %s", got)
	}
	if _, err := c.Message(t.Context(), partition, "m4"); !queen.Temporary(err) {
		t.Errorf("Message() answered with another: %v", err)
	}
	for _, address := range [][2]string{{"", "m"}, {"p", ""}} {
		if _, err := c.Message(t.Context(), address[0], address[1]); err == nil {
			t.Errorf("Message(%q) succeeds", address)
		}
	}
	gone, _ := answering(t, 404, `{"error":"Message not found"}`)
	if _, err := gone.Message(t.Context(), partition, "m"); !errors.Is(err, queen.ErrNotFound) {
		t.Errorf("Message() of none: %v", err)
	}
}

func TestPartitions(t *testing.T) {
	t.Parallel()
	c, b := replaying(t, "queues", "queue detail")
	got, err := c.Partitions(t.Context(), "a/b")
	if err != nil || len(got) != 1 || got["p"] != "08d5db56-c0b8-4c9f-97a4-863b67f08532" || b.last(t).uri != "/api/v1/resources/queues/a%2Fb" {
		t.Errorf("Partitions() = %v, %v", got, err)
	}
	for _, body := range []string{`{}`, `{"partitions":[{"name":"p"}]}`, `[]`} {
		c, _ := answering(t, 200, body)
		if _, err := c.Partitions(t.Context(), "q"); err == nil {
			t.Errorf("Partitions() answered %s succeeds", body)
		}
	}
}

func TestPeekTimer(t *testing.T) {
	t.Parallel()
	c, b := replaying(t, "timers", "peek")
	got, found, err := c.PeekTimer(t.Context(), "kl-a263e9", "r/route/evt-1/1")
	if err != nil || !found || string(got.Payload) != `{"k": "r/route/evt-1/1"}` || got.TransactionID != "evt-1#1" || got.Partition != "Default" || got.DeliverAt.IsZero() || got.Claimed {
		t.Errorf("PeekTimer() = %+v %s, %v, %v", got, got.Payload, found, err)
	}
	if uri := b.last(t).uri; uri != "/api/v1/timers/kl-a263e9/r/route/evt-1/1" {
		t.Errorf("asked %s", uri)
	}
	for body, want := range map[string]bool{
		`{"found":false,"queue":"q","timerKey":"k"}`: true,
		`{}`: false,
		`{"found":true,"queue":"q","timerKey":"other","payload":"MQ=="}`:                                          false,
		`{"found":true,"queue":"q","timerKey":"k","payload":"MQ","txn":"t","partition":"p"}`:                      false,
		`{"found":true,"queue":"q","timerKey":"k","payload":"eA==","txn":"t","partition":"p"}`:                    false,
		`{"found":true,"queue":"q","timerKey":"k","payload":"MQ==","payloadZstd":true,"txn":"t","partition":"p"}`: false,
	} {
		c, _ := answering(t, 200, body)
		if _, found, err := c.PeekTimer(t.Context(), "q", "k"); found || (err == nil) != want {
			t.Errorf("PeekTimer() answered %s: %v, %v", body, found, err)
		}
	}
}
