package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/dispatch"
)

func replying(r bridge.Route) bridge.Route {
	r.Reply.Queue = "answers"
	return r
}

// echo answers the n-th call of an event with what came, and its number.
func echo(status int) func(context.Context, call) bridge.Response {
	return func(_ context.Context, c call) bridge.Response {
		return bridge.Response{Status: status, Header: http.Header{"Content-Type": {"text/x-echo"}}, Body: []byte("echo of " + c.body)}
	}
}

// stored is what a group has not yet seen of a queue; it stays there.
func (k *kit) stored(queueName string) (messages []queen.Message) {
	k.Helper()
	for {
		popped, err := k.client.Pop(k.Context(), queen.PopRequest{
			Queue: queueName, Group: "reader", Batch: 100, Partitions: 100, Lease: time.Minute, SubscriptionMode: "all"})
		if err != nil {
			k.Fatalf("pop of %s: %v", queueName, err)
		}
		if len(popped.Messages) == 0 {
			return messages
		}
		messages = append(messages, popped.Messages...)
	}
}

// repliesIn reads the reply events of a queue, in the order of their bodies.
func (k *kit) repliesIn(queueName string) []bridge.Event {
	k.Helper()
	var events []bridge.Event
	for _, m := range k.stored(queueName) {
		e, ours, err := bridge.DecodeEvent(m.Data)
		if err != nil || !ours || e.ID != m.TransactionID {
			k.Fatalf("reply %s: ours %v, id %s, %v", m.TransactionID, ours, e.ID, err)
		}
		events = append(events, e)
	}
	slices.SortFunc(events, func(a, b bridge.Event) int { return strings.Compare(string(a.Body), string(b.Body)) })
	return events
}

func bodies(events []bridge.Event) []string {
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = string(e.Body)
	}
	return out
}

func TestAnswersArePushedAsEvents(t *testing.T) {
	t.Parallel()
	for _, r := range []bridge.Route{replying(testRoute("r", "q")), replying(orderedRoute("r", "q"))} {
		t.Run(string(r.Ordering), func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				body := "\x00\xff{\"a\": 1e400,\"a\":2}\n \\u0000"
				k.fn.answers(func(_ context.Context, c call) bridge.Response {
					if c.Capture == 0 {
						t.Errorf("the body was not asked for")
					}
					return bridge.Response{Status: 201, Body: []byte(body), Header: http.Header{
						"Content-Type": {"text/plain"}, "X-Two": {"1", "2"}, "Set-Cookie": {"a=b"}, "Connection": {"X-Hop"}, "X-Hop": {"1"},
						"X-Secret": {"s"}, "Queen-Outcome": {"success"}, "Queen-Event": {"forged"}, "Date": {"now"},
					}}
				})
				p := k.start(nil, r)
				origin := bridge.Event{ID: "gh:1", Source: "github", Received: time.Now(), Body: []byte("x"), Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
				_, err := k.client.Push(k.Context(), []queen.Item{{Queue: "q", Partition: "repo/1", TransactionID: "gh:1", Payload: origin.AppendPayload(nil)}})
				if err != nil {
					t.Fatal(err)
				}
				k.wait(time.Minute)
				messages := k.stored("answers")
				if len(messages) != 1 || messages[0].Partition != "repo/1" {
					t.Fatalf("replies = %+v, want one in the partition of its event", messages)
				}
				got, ours, err := bridge.DecodeEvent(messages[0].Data)
				if err != nil || !ours {
					t.Fatalf("reply: %v, %v", ours, err)
				}
				id := k.fn.all()[0].DeliveryID
				want := bridge.Event{
					ID: got.ID, Source: "r", Type: "reply", Received: got.Received, Class: bridge.ClassNone, ContentType: "text/plain",
					Traceparent: origin.Traceparent, Body: []byte(body),
					Headers: []bridge.Header{{Name: "content-type", Value: "text/plain"}, {Name: "date", Value: "now"}, {Name: "queen-delivery", Value: id},
						{Name: "queen-event", Value: "gh:1"}, {Name: "queen-status", Value: "201"}, {Name: "x-two", Value: "1"}, {Name: "x-two", Value: "2"}},
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("reply (-want +got):\n%s", d)
				}
				if !strings.HasSuffix(got.ID, "/0/reply") {
					t.Errorf("id = %s", got.ID)
				}
				if n := p.metric(t, "replies_total", "route=r"); n != 1 {
					t.Errorf("replies_total = %v", n)
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

func TestAnswersWithoutABodyAreNoReplies(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := replying(testRoute("r", "q"))
		k.fn.answers(func(_ context.Context, c call) bridge.Response {
			switch c.body {
			case `{"n":0}`:
				return bridge.Response{Status: 202, Body: []byte("accepted")}
			case `{"n":1}`:
				return bridge.Response{Status: 204}
			case `{"n":2}`:
				return bridge.Response{Status: 200}
			case `{"n":3}`:
				return bridge.Response{Status: 202, Body: []byte("acc"), Cut: true}
			}
			return bridge.Response{Status: 400, Body: []byte("no")}
		})
		p := k.start(nil, r)
		for i := range 5 {
			k.push("q", "p", fmt.Sprintf(`{"n":%d}`, i))
		}
		k.wait(time.Minute)
		if n := k.depth("answers", "reader"); n != 0 || len(k.fn.all()) != 5 {
			t.Errorf("%d replies after %d calls, want none after 5", n, len(k.fn.all()))
		}
		k.settledAll(r)
		p.stop()
	})
}

// Only the answer that ends a delivery is a reply: not those before it.
func TestFinalFailureIsAReplyWhereAskedFor(t *testing.T) {
	t.Parallel()
	for _, r := range []bridge.Route{replying(testRoute("r", "q")), replying(orderedRoute("r", "q"))} {
		t.Run(string(r.Ordering), func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r.Reply.OnFailure, r.Retry.MaxAttempts = true, 2
				k.fn.answers(func(ctx context.Context, c call) bridge.Response {
					resp := echo(map[string]int{`{"n":0}`: 500, `{"n":1}`: 422, `{"n":2}`: 422}[c.body])(ctx, c)
					resp.Body = fmt.Appendf(resp.Body, " %d", c.n)
					resp.Truncated = c.body == `{"n":2}`
					if c.body == `{"n":3}` {
						return bridge.Response{Err: errors.New("gone"), Class: bridge.FailureTimeout, Sent: true}
					}
					return resp
				})
				p := k.start(nil, r)
				for i := range 4 {
					k.push("q", "p", fmt.Sprintf(`{"n":%d}`, i))
				}
				k.wait(10 * time.Minute)
				replies := k.repliesIn("answers")
				if d := cmp.Diff([]string{`echo of {"n":0} 2`, `echo of {"n":1} 1`}, bodies(replies)); d != "" {
					t.Errorf("replies (-want +got):\n%s", d)
				}
				for _, e := range replies {
					if e.Type != "reply.failed" {
						t.Errorf("type = %q", e.Type)
					}
				}
				if n := len(k.graves("r")); n != 4 {
					t.Errorf("%d dead letters, want 4", n)
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

func TestPartitionOfReplies(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]string{
		"":                    "p",
		"body:order.id":       "o-1",
		"body:absent":         "p",
		"header:X-Key":        "key 1",
		"literal:all":         "all",
		"body:order.\\.long":  "p",
		"body:order.unicode":  "sha256:4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c",
		"header:not\x00there": "p",
	} {
		inBubble(t, nil, func(k *kit) {
			r := replying(testRoute("r", "q"))
			r.Reply.Partition = form
			k.fn.answers(func(context.Context, call) bridge.Response {
				return bridge.Response{Status: 200, Header: http.Header{"X-Key": {"key 1"}}, Body: []byte(`{"order":{"id":"o-1","unicode":"é"}}`)}
			})
			p := k.start(nil, r)
			k.push("q", "p", `{"n":1}`)
			k.wait(time.Minute)
			messages := k.stored("answers")
			if len(messages) != 1 || messages[0].Partition != want {
				t.Errorf("partition %q: %+v, want %q", form, messages, want)
			}
			p.stop()
		})
	}
}

// A reply is whole or none: what is known in part is an unknown outcome, what
// is larger than Queen takes a dead letter.
func TestCutAnswerIsNoReply(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		first bridge.Response
		calls int
		class bridge.FailureClass
	}{
		{"connection lost", bridge.Response{Status: 200, Body: []byte("ha"), Cut: true, Sent: true}, 2, ""},
		{"too large to read", bridge.Response{Status: 200, Body: []byte("ha"), Truncated: true, Sent: true}, 1, bridge.FailureTooLarge},
		{"too large to store", bridge.Response{Status: 200, Body: []byte(strings.Repeat("\x01", 6<<20)), Sent: true}, 1, bridge.FailureTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				r := replying(testRoute("r", "q"))
				k.fn.answers(func(ctx context.Context, c call) bridge.Response {
					if c.n == 1 {
						return tt.first
					}
					return echo(200)(ctx, c)
				})
				p := k.start(nil, r)
				k.push("q", "p", `{"n":1}`)
				k.wait(time.Minute)
				if n := len(k.fn.all()); n != tt.calls {
					t.Errorf("%d calls, want %d", n, tt.calls)
				}
				graves := k.graves("r")
				if tt.class == "" {
					if n := p.metric(t, "unknown_outcomes_total", "route=r"); n != 1 || !k.logs.has("unknown=true") {
						t.Errorf("unknown_outcomes_total = %v, want 1, and a record that says so", n)
					}
					if d := cmp.Diff([]string{`echo of {"n":1}`}, bodies(k.repliesIn("answers"))); d != "" || len(graves) != 0 {
						t.Errorf("%d dead letters, replies (-want +got):\n%s", len(graves), d)
					}
				} else if len(graves) != 1 || graves[0].reason.Class != tt.class || graves[0].reason.Status != 200 || k.depth("answers", "reader") != 0 {
					t.Errorf("dead letters = %+v", graves)
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

// The answer to a settle with replies is lost, time and again: the function is
// not called for it, and each reply is there once.
func TestLostAnswerOfASettleWithReplies(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]devbroker.Fault{"answer": {LoseAnswer: true}, "request": {Status: 503}} {
		for _, r := range []bridge.Route{replying(testRoute("r", "q")), replying(orderedRoute("r", "q"))} {
			t.Run(name+"/"+string(r.Ordering), func(t *testing.T) {
				t.Parallel()
				inBubble(t, nil, func(k *kit) {
					k.fn.answers(func(ctx context.Context, c call) bridge.Response {
						if c.body == `{"n":1}` && c.n == 1 {
							return bridge.Response{Status: 500}
						}
						return echo(200)(ctx, c)
					})
					k.faults.times("/api/v1/transaction", 4, fault)
					for i := range 6 {
						k.push("q", fmt.Sprint("p", i/3), fmt.Sprintf(`{"n":%d}`, i))
					}
					p := k.start(nil, r)
					k.wait(5 * time.Minute)
					if n := len(k.fn.all()); n != 7 {
						t.Errorf("%d calls, want 7", n)
					}
					if n := len(k.repliesIn("answers")); n != 6 {
						t.Errorf("%d replies, want 6", n)
					}
					k.settledAll(r)
					p.stop()
				})
			})
		}
	}
}

// A holder that lost its lease may have pushed the reply: the next one's settle
// is a `duplicate`, and what else it holds must not be lost with it.
func TestReplyOfAnEarlierHolderHidesNothing(t *testing.T) {
	t.Parallel()
	for _, r := range []bridge.Route{replying(testRoute("r", "q")), replying(orderedRoute("r", "q"))} {
		t.Run(string(r.Ordering), func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(k *kit) {
				k.fn.answers(func(ctx context.Context, c call) bridge.Response {
					if c.body == `{"n":1}` {
						return bridge.Response{Status: 400}
					}
					return echo(200)(ctx, c)
				})
				k.push("q", "p", `{"n":0}`, `{"n":1}`)
				first := k.stored("q")[0]
				lineage := bridge.Lineage("r", bridge.Origin{Queue: "q", Partition: "p", MessageID: first.ID})
				earlier := bridge.Event{ID: bridge.ReplyTxn(lineage, 0), Source: "r", Type: "reply", Body: []byte("the first holder's")}
				_, err := k.client.Push(k.Context(), []queen.Item{{Queue: "answers", Partition: "p", TransactionID: earlier.ID, Payload: earlier.AppendPayload(nil)}})
				if err != nil {
					t.Fatal(err)
				}
				p := k.start(nil, r)
				k.wait(time.Minute)
				if d := cmp.Diff([]string{"the first holder's"}, bodies(k.repliesIn("answers"))); d != "" {
					t.Errorf("replies (-want +got):\n%s", d)
				}
				if n := len(k.graves("r")); n != 1 || len(k.fn.all()) != 2 {
					t.Errorf("%d dead letters after %d calls, want 1 after 2", n, len(k.fn.all()))
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

func TestDetachedCallPushesItsReplyBeforeItsTimerIsCancelled(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		inBubble(t, nil, func(k *kit) {
			r := replying(testRoute("r", "q"))
			k.fn.answers(func(ctx context.Context, c call) bridge.Response {
				if c.n == 1 {
					return after(ctx, 20*time.Second, echo(200)(ctx, c))
				}
				return echo(200)(ctx, c)
			})
			if lost { // the push of the reply is never answered: the timer must stay
				k.faults.set(func(r *http.Request) devbroker.Fault {
					if r.URL.Path == "/api/v1/push" {
						return devbroker.Fault{Status: 503}
					}
					return devbroker.Fault{}
				})
			}
			p := k.start(nil, r)
			if lost {
				k.faults.set(nil)
			}
			k.push("q", "p", `{"n":1}`)
			k.wait(3 * time.Second)
			if lost {
				k.faults.set(func(r *http.Request) devbroker.Fault {
					if r.URL.Path == "/api/v1/push" {
						return devbroker.Fault{Status: 503}
					}
					return devbroker.Fault{}
				})
			}
			k.wait(25 * time.Second)
			k.faults.set(nil)
			k.wait(2 * time.Minute)
			want := map[bool]int{false: 1, true: 2}[lost]
			if n := len(k.fn.all()); n != want {
				t.Errorf("lost %v: %d calls, want %d", lost, n, want)
			}
			if d := cmp.Diff([]string{`echo of {"n":1}`}, bodies(k.repliesIn("answers"))); d != "" {
				t.Errorf("lost %v: replies (-want +got):\n%s", lost, d)
			}
			k.settledAll(r)
			p.stop()
		})
	}
}

func TestTwoRoutesShareAReplyQueue(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		a, b := replying(testRoute("a", "q")), replying(testRoute("b", "q"))
		k.fn.answers(echo(200))
		p := k.start(nil, a, b)
		k.push("q", "p", `{"n":1}`, `{"n":2}`)
		k.wait(time.Minute)
		sources := map[string]int{}
		for _, e := range k.repliesIn("answers") {
			sources[e.Source]++
		}
		if d := cmp.Diff(map[string]int{"a": 2, "b": 2}, sources); d != "" {
			t.Errorf("replies by source (-want +got):\n%s", d)
		}
		k.settledAll(a)
		k.settledAll(b)
		p.stop()
	})
}

// 1.x forgets ids of pending messages; the replies must not be forgotten with
// them.
func TestRepliesOfOldEvents(t *testing.T) {
	t.Parallel()
	for _, r := range []bridge.Route{replying(testRoute("r", "q")), replying(orderedRoute("r", "q"))} {
		t.Run(string(r.Ordering), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(c *devbroker.Config) { c.ForgetAfter = 15 * time.Minute }, func(k *kit) {
				k.fn.answers(func(ctx context.Context, c call) bridge.Response {
					if c.body == `{"n":1}` && c.n == 1 {
						return bridge.Response{Status: 500}
					}
					return echo(200)(ctx, c)
				})
				k.push("q", "p", `{"n":0}`, `{"n":1}`, `{"n":2}`)
				k.wait(time.Hour)
				p := k.start(nil, r)
				k.wait(20 * time.Minute)
				if d := cmp.Diff([]string{`echo of {"n":0}`, `echo of {"n":1}`, `echo of {"n":2}`}, bodies(k.repliesIn("answers"))); d != "" {
					t.Errorf("replies (-want +got):\n%s", d)
				}
				k.settledAll(r)
				p.stop()
			})
		})
	}
}

// A reply that Queen refuses for good is no reason to call the function again
// and again.
func TestReplyRefusedForGoodEndsAsADeadLetter(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := replying(testRoute("r", "q"))
		k.fn.answers(echo(200))
		k.faults.set(func(r *http.Request) devbroker.Fault {
			if r.URL.Path == "/api/v1/transaction" && strings.Contains(readBody(r), `"queue":"answers"`) {
				return devbroker.Fault{Status: 413, Body: "too large"}
			}
			return devbroker.Fault{}
		})
		p := k.start(nil, r)
		k.push("q", "p", `{"n":1}`)
		k.wait(5 * time.Minute)
		graves := k.graves("r")
		if len(graves) != 1 || graves[0].reason.Class != bridge.FailureTooLarge || !strings.Contains(graves[0].reason.Error, "did its work") {
			t.Errorf("dead letters = %+v", graves)
		}
		if n := len(k.fn.all()); n != 1 {
			t.Errorf("%d calls, want 1", n)
		}
		k.settledAll(r)
		p.stop()
	})
}

// What was delivered before a stop is settled with its reply: giving back what
// was not called must not ack it alone.
func TestStopSettlesRepliesOfWhatWasDelivered(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(k *kit) {
		r := replying(orderedRoute("r", "q"))
		k.fn.answers(echo(200))
		k.push("q", "p", `{"n":1}`, `{"n":2}`)
		p := k.start(func(c *dispatch.Config) { c.Targets[0].Rate = bridge.TargetRate{PerSecond: 0.1, Burst: 1} }, r)
		k.wait(100 * time.Millisecond) // n 1 was delivered, n 2 waits for the rate limit
		if n := len(k.fn.all()); n != 1 {
			t.Fatalf("%d calls before the stop, want 1", n)
		}
		p.stop()
		if d := cmp.Diff([]string{`echo of {"n":1}`}, bodies(k.repliesIn("answers"))); d != "" {
			t.Errorf("replies (-want +got):\n%s", d)
		}
		if n := k.depth("q", "r"); n != 1 {
			t.Errorf("%d events left, want the one that was not called", n)
		}
	})
}
