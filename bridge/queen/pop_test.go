package queen_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func popRequest() queen.PopRequest {
	return queen.PopRequest{Queue: "q", Group: "g", Batch: 10, Partitions: 1, Lease: 30 * time.Second, SubscriptionMode: "all"}
}

func TestPopAsksForEverythingThatHasADefault(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, path, query string
		change            func(*queen.PopRequest)
	}{
		{"queue-scoped", "/api/v1/pop/queue/q", "batch=10&consumerGroup=g&leaseSeconds=30&partitions=1&subscriptionMode=all&wait=false", func(*queen.PopRequest) {}},
		{"long poll", "/api/v1/pop/queue/q", "batch=10&consumerGroup=g&leaseSeconds=30&partitions=1&subscriptionMode=all&timeout=1500&wait=true",
			func(r *queen.PopRequest) { r.Wait = 1500 * time.Millisecond }},
		{"pinned", "/api/v1/pop/queue/a%20b%2Fc/partition/p%2F+%25%C3%A9%3F", "batch=10&consumerGroup=g+1%2B2&leaseSeconds=30&partitions=1&subscriptionMode=all&wait=false",
			func(r *queen.PopRequest) { r.Queue, r.Partition, r.Group = "a b/c", "p/+%é?", "g 1+2" }},
		{"dots", "/api/v1/pop/queue/%2E%2E/partition/%2E", "batch=10&consumerGroup=g&leaseSeconds=30&partitions=1&subscriptionMode=all&wait=false",
			func(r *queen.PopRequest) { r.Queue, r.Partition = "..", "." }},
		{"discovery", "/api/v1/pop", "batch=1&consumerGroup=g&leaseSeconds=2&namespace=queenbridge-retry&partitions=64&subscriptionFrom=2026-11-30T00%3A00%3A00Z&subscriptionMode=new&task=r&wait=false",
			func(r *queen.PopRequest) {
				r.Queue, r.Namespace, r.Task, r.Batch, r.Partitions, r.Lease = "", "queenbridge-retry", "r", 1, 64, 1001*time.Millisecond
				r.SubscriptionMode, r.SubscriptionFrom = "new", "2026-11-30T00:00:00Z"
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, b := answering(t, 204, "")
			r := popRequest()
			tt.change(&r)
			p, err := c.Pop(t.Context(), r)
			if err != nil || len(p.Messages) != 0 || p.Asked.IsZero() {
				t.Fatalf("Pop() = %v, %v; want nothing, and when it was asked", p, err)
			}
			path, query, _ := strings.Cut(b.last(t).uri, "?")
			values, err := url.ParseQuery(query)
			if err != nil || path != tt.path || values.Encode() != tt.query {
				t.Errorf("asked %s ? %s\nwant  %s ? %s", path, values.Encode(), tt.path, tt.query)
			}
		})
	}
}

func TestPopRefusesUnclearRequests(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*queen.PopRequest){
		"no group":                  func(r *queen.PopRequest) { r.Group = "" },
		"no batch":                  func(r *queen.PopRequest) { r.Batch = 0 },
		"no lease":                  func(r *queen.PopRequest) { r.Lease = 0 },
		"negative wait":             func(r *queen.PopRequest) { r.Wait = -1 },
		"unknown mode":              func(r *queen.PopRequest) { r.SubscriptionMode = "latest" },
		"no mode":                   func(r *queen.PopRequest) { r.SubscriptionMode = "" },
		"unreadable time":           func(r *queen.PopRequest) { r.SubscriptionFrom = "yesterday" },
		"nothing to pop":            func(r *queen.PopRequest) { r.Queue = "" },
		"partition without queue":   func(r *queen.PopRequest) { r.Queue, r.Namespace, r.Partition = "", "n", "p" },
		"queue and namespace":       func(r *queen.PopRequest) { r.Namespace = "n" },
		"tolerant, not pinned":      func(r *queen.PopRequest) { r.Tolerant, r.Batch = true, 1 },
		"tolerant, more than one":   func(r *queen.PopRequest) { r.Tolerant, r.Partition = true, "p" },
		"partitions below nothing":  func(r *queen.PopRequest) { r.Partitions = -1 },
		"lease of half a second":    func(r *queen.PopRequest) { r.Lease = time.Second / 2 },
		"negative batch is no one":  func(r *queen.PopRequest) { r.Batch = -1 },
		"task beside queue":         func(r *queen.PopRequest) { r.Task = "t" },
		"mode in the wrong letters": func(r *queen.PopRequest) { r.SubscriptionMode = "ALL" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, b := answering(t, 204, "")
			r := popRequest()
			spoil(&r)
			if _, err := c.Pop(t.Context(), r); err == nil || len(b.requests()) > 0 {
				t.Errorf("Pop() error = %v after %d requests; want a refusal before any", err, len(b.requests()))
			}
		})
	}
}

func TestPopReadsRecordedBatches(t *testing.T) {
	t.Parallel()
	c, b := replaying(t, "pop", "pop several partitions")
	before := time.Now()
	p, err := c.Pop(t.Context(), popRequest())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(queen.Lease{ID: "01a22b7f-054a-7000-b7ba-af385d5839b8", Group: "g", Node: b.URL}, p.Lease); d != "" {
		t.Error(d)
	}
	if p.Asked.Before(before) || p.Asked.After(time.Now()) {
		t.Errorf("Asked = %v", p.Asked)
	}
	var got []string
	for _, m := range p.Messages {
		got = append(got, m.TransactionID+" "+m.Partition+" "+m.PartitionID[:4])
	}
	if d := cmp.Diff([]string{"d p2 8aa6", "a p1 7fad", "b p1 7fad", "c p1 7fad"}, got); d != "" {
		t.Error(d)
	}
	m := p.Messages[0]
	if m.ID != "01a22b7f-0526-7000-9bd7-7ab114e3d1ef" || m.CreatedAt != time.Date(2026, 11, 30, 8, 7, 54, 409661000, time.UTC) || m.DeliveryAttempt != 0 {
		t.Errorf("first message = %+v", m)
	}
}

func TestPopKeepsPayloadBytes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ file, name, want string }{
		{"timers", "a fired message as popped", `{ "z":1, "a":[1.0,12345678901234567890123], "u":"\u00e9" }`},
		{"payload", "payload kept byte for byte: key order", `{"z":1,"a":2,"m":{"y":1,"b":2}}`},
		{"payload", "payload kept byte for byte: NUL escape", `"a\u0000b"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, _ := replaying(t, tt.file, tt.name)
			p, err := c.Pop(t.Context(), popRequest())
			if err != nil || len(p.Messages) != 1 || string(p.Messages[0].Data) != tt.want {
				t.Fatalf("Pop() = %s, %v; want %s", p.Messages[0].Data, err, tt.want)
			}
			if cap(p.Messages[0].Data) != len(tt.want) {
				t.Error("appending to Data would overwrite the answer")
			}
		})
	}
}

// message builds a message as Queen 1.3.0 writes it, data spliced in raw.
func message(id, data string) string {
	return `{"id":"i-` + id + `","transactionId":"` + id + `","traceId":null,"data":` + data +
		`,"producerSub":null,"createdAt":"2026-11-30T08:07:36.478945Z","partitionId":"pid","partition":"p","leaseId":"L","consumerGroup":"g"}`
}

func popped(messages ...string) string {
	return `{"success":true,"queue":"q","partition":"p","partitionId":"pid","leaseId":"L","consumerGroup":"g","messages":[` +
		strings.Join(messages, ",") + `],"partitionsClaimed":1}`
}

func TestPopKeepsAnyJSONValue(t *testing.T) {
	t.Parallel()
	for _, data := range []string{`null`, `1`, `"x"`, `[]`, `{"a":1,"a":2}`, `1e400`, `"\ud800"`, "{ \n}", "\"\xff\"", `"}],\"producerSub\":"`} {
		c, _ := answering(t, 200, popped(message("t", data)))
		p, err := c.Pop(t.Context(), popRequest())
		if err != nil || len(p.Messages) != 1 || string(p.Messages[0].Data) != data || p.Messages[0].BadData {
			t.Errorf("Pop() of data %q = %+v, %v", data, p.Messages, err)
		}
	}
}

func TestPopReadsLaterFields(t *testing.T) {
	t.Parallel()
	body := strings.Replace(popped(message("t", `1`)), `"consumerGroup":"g"}`, `"consumerGroup":"g","deliveryAttempt":3,"offset":17,"new":{"x":[1]}}`, 1)
	c, _ := answering(t, 200, body)
	p, err := c.Pop(t.Context(), popRequest())
	if err != nil || p.Messages[0].DeliveryAttempt != 3 {
		t.Errorf("Pop() = %+v, %v; want delivery attempt 3", p.Messages, err)
	}
}

func TestPopOfNoMessages(t *testing.T) {
	t.Parallel()
	c, _ := answering(t, 200, popped()) // conflating pops answer so
	if p, err := c.Pop(t.Context(), popRequest()); err != nil || len(p.Messages) != 0 || p.Lease.ID != "" {
		t.Errorf("Pop() = %+v, %v; want nothing", p, err)
	}
}

func TestPopReportsUnreadableBodies(t *testing.T) {
	t.Parallel()
	good := popped(message("a", `1`), message("b", `2`))
	for name, body := range map[string]string{
		"payload not JSON":         popped(message("a", `<xml/>`)),
		"payload cut off":          popped(message("a", `{"x":`)),
		"payload empty":            popped(message("a", ``)),
		"payload rewrites its ids": popped(message("a", `1,"transactionId":"other"`)),
		"bytes behind":             good + `{}`,
		"not an object":            `[]`,
		"html":                     `<html>`,
		"empty":                    ``,
		"no ids":                   popped(`{"data":1}`),
		"no data":                  popped(strings.Replace(message("a", `1`), `"data":1,`, ``, 1)),
		"another lease":            popped(strings.Replace(message("a", `1`), `"leaseId":"L"`, `"leaseId":"M"`, 1)),
		"id is a number":           popped(strings.Replace(message("a", `1`), `"id":"i-a"`, `"id":7`, 1)),
		"messages no array":        `{"success":true,"leaseId":"L","messages":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := answering(t, 200, body)
			p, err := c.Pop(t.Context(), popRequest())
			var bad *queen.BadBodyError
			if !errors.As(err, &bad) || len(p.Messages) > 0 || !queen.Uncertain(err) {
				t.Errorf("Pop() = %+v, %v; want a *BadBodyError, uncertain", p, err)
			}
		})
	}
	for cut := range len(good) {
		c, _ := answering(t, 200, good[:cut])
		var bad *queen.BadBodyError
		if p, err := c.Pop(t.Context(), popRequest()); !errors.As(err, &bad) || len(p.Messages) > 0 {
			t.Fatalf("Pop() of an answer cut at %d = %+v, %v", cut, p, err)
		}
	}
}

func TestUnreadablePopTellsWhereTheFaultIs(t *testing.T) {
	t.Parallel()
	c, b := answering(t, 200, popped(message("a", `1`), message("b", `<xml/>`)))
	_, err := c.Pop(t.Context(), popRequest())
	var bad *queen.BadBodyError
	if !errors.As(err, &bad) {
		t.Fatal(err)
	}
	want := &queen.BadBodyError{Lease: queen.Lease{ID: "L", Group: "g", Node: b.URL}, Partition: "p", PartitionID: "pid", TransactionID: "a"}
	got := &queen.BadBodyError{Lease: bad.Lease, Partition: bad.Partition, PartitionID: bad.PartitionID, TransactionID: bad.TransactionID}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if strings.Contains(err.Error(), "xml") {
		t.Errorf("error shows the payload: %v", err)
	}
}

func TestTolerantPopReadsAroundThePayload(t *testing.T) {
	t.Parallel()
	request := popRequest()
	request.Partition, request.Batch, request.Tolerant = "p", 1, true
	for _, data := range []string{
		`<xml/>`, `{"x":`, ``, "\x00\xff", ` {"x":1} trailing`, `"unclosed`, `}],"partitionsClaimed":9}`,
		`1,"transactionId":"other"`, `"x","producerSub":null,"createdAt":"2020-01-01T00:00:00Z"},{"id":`,
	} {
		c, _ := answering(t, 200, popped(message("evt", data)))
		p, err := c.Pop(t.Context(), request)
		if err != nil || len(p.Messages) != 1 {
			t.Errorf("tolerant Pop() of %q: %+v, %v", data, p.Messages, err)
			continue
		}
		m := p.Messages[0]
		if string(m.Data) != data || !m.BadData || m.TransactionID != "evt" || m.ID != "i-evt" || m.PartitionID != "pid" || p.Lease.ID != "L" {
			t.Errorf("tolerant Pop() of %q = %+v under %+v", data, m, p.Lease)
		}
	}
	c, _ := answering(t, 200, popped(message("evt", `{"fine":true}`)))
	if p, err := c.Pop(t.Context(), request); err != nil || p.Messages[0].BadData || string(p.Messages[0].Data) != `{"fine":true}` {
		t.Errorf("tolerant Pop() of good data = %+v, %v", p.Messages, err)
	}
	for _, body := range []string{``, `<html>`, `{"success":true}`, popped(message("a", `<`))[:60]} {
		c, _ := answering(t, 200, body)
		var bad *queen.BadBodyError
		if p, err := c.Pop(t.Context(), request); !errors.As(err, &bad) {
			t.Errorf("tolerant Pop() of body %q = %+v, %v; want a *BadBodyError", body, p, err)
		}
	}
}

func TestPopWithoutSuccess(t *testing.T) {
	t.Parallel()
	c, _ := answering(t, 200, `{"success":false,"error":"conflation","messages":[]}`)
	var misfit *queen.AnswerError
	if _, err := c.Pop(t.Context(), popRequest()); !errors.As(err, &misfit) {
		t.Errorf("Pop() error = %v; want an *AnswerError", err)
	}
	c, _ = replaying(t, "outage", "pinned pop while away")
	var status *queen.StatusError
	if _, err := c.Pop(t.Context(), popRequest()); !errors.As(err, &status) || status.Status != 500 || status.Text != "pool" {
		t.Errorf("Pop() error = %v; want 500 pool", err)
	}
}

// FuzzPop: whatever a broker answers, Pop returns complete messages whose data
// is valid JSON and part of the answer, or an error.
func FuzzPop(f *testing.F) {
	for _, file := range []string{"pop", "payload", "timers"} {
		raw, err := os.ReadFile("testdata/recorded/" + file + ".json")
		if err != nil {
			f.Fatal(err)
		}
		var all []exchange
		if err := json.Unmarshal(raw, &all); err != nil {
			f.Fatal(err)
		}
		for _, e := range all {
			f.Add([]byte(e.Response.BodyText), false)
			f.Add([]byte(e.Response.Body), true)
		}
	}
	f.Add([]byte(popped(message("a", `<xml/>`))), true)
	f.Add([]byte(popped(message("a", `1`), message("b", `2`))), false)
	f.Fuzz(func(t *testing.T, body []byte, tolerant bool) {
		c := client(t, queen.Config{URLs: []string{"http://queen"}, Transport: fixedAnswer(200, string(body))})
		r := popRequest()
		if tolerant {
			r.Partition, r.Batch, r.Tolerant = "p", 1, true
		}
		p, err := c.Pop(t.Context(), r)
		if err != nil && len(p.Messages) > 0 {
			t.Fatalf("messages beside the error %v", err)
		}
		for _, m := range p.Messages {
			if m.ID == "" || m.PartitionID == "" || m.TransactionID == "" && !strings.Contains(string(body), "transactionId") {
				t.Fatalf("incomplete message %+v", m)
			}
			if json.Valid(m.Data) == m.BadData {
				t.Fatalf("data %q, BadData %t", m.Data, m.BadData)
			}
			if !strings.Contains(string(body), string(m.Data)) {
				t.Fatalf("data %q is not in the answer", m.Data)
			}
		}
	})
}

// FuzzTolerantPop: any payload at all comes back byte for byte.
func FuzzTolerantPop(f *testing.F) {
	f.Add([]byte(`<xml/>`))
	f.Add([]byte(`1,"producerSub":null,"id":"x"`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := client(t, queen.Config{URLs: []string{"http://queen"}, Transport: fixedAnswer(200, popped(message("a", string(data))))})
		r := popRequest()
		r.Partition, r.Batch, r.Tolerant = "p", 1, true
		p, err := c.Pop(t.Context(), r)
		if forged(string(data)) {
			return
		}
		if err != nil || len(p.Messages) != 1 || p.Messages[0].TransactionID != "a" {
			t.Fatalf("Pop() = %+v, %v", p, err)
		}
		m := p.Messages[0]
		if m.BadData && string(m.Data) != string(data) || !m.BadData && string(m.Data) != strings.TrimSpace(string(data)) {
			t.Fatalf("data = %q, want %q", m.Data, data)
		}
	})
}

// forged: a payload may complete its message and begin another or name
// further fields in a way no reader can tell from the broker's own.
func forged(data string) bool {
	var v any
	return json.Unmarshal([]byte(`{"data":`+data+`}`), &v) == nil && !json.Valid([]byte(data)) ||
		json.Unmarshal([]byte(popped(message("a", data))), &v) == nil && !json.Valid([]byte(data))
}

func BenchmarkPop(b *testing.B) {
	for _, n := range []int{1, 100} {
		var ms []string
		for i := range n {
			ms = append(ms, message(fmt.Sprint("evt-", i), `{"body":"`+strings.Repeat("x", 1000)+`"}`))
		}
		body := popped(ms...)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := client(b, queen.Config{URLs: []string{"http://queen"}, Transport: fixedAnswer(200, body)})
			r := popRequest()
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if p, err := c.Pop(b.Context(), r); err != nil || len(p.Messages) != n {
					b.Fatal(p, err)
				}
			}
		})
	}
}
