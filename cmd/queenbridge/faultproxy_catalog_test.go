package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// fault is one way in which a request and its answer go wrong. Its zero value
// does no harm.
type fault struct {
	name string
	// delay passes before the broker gets the request.
	delay time.Duration
	// unsent: the broker never gets it.
	unsent bool
	// silent: the bridge never gets an answer, the connection stays.
	silent bool
	cut    cut
	// reply takes the place of the broker's answer.
	reply func(*exchange) reply
	// mangle changes the body of the answer.
	mangle func([]byte) []byte
	// dribble is the time over which the body is written in small pieces.
	dribble time.Duration
}

type cut int8

const (
	cutNothing cut = iota
	cutAll         // reset before the answer's first byte
	cutBody        // the answer breaks off in its body
)

// loses says that the bridge cannot read the answer.
func (f *fault) loses() bool {
	return f.silent || f.cut != cutNothing || f.reply != nil || f.mangle != nil
}

// write writes the body the way the fault has it.
func (f *fault) write(w http.ResponseWriter, r *http.Request, body []byte) {
	flush := http.NewResponseController(w).Flush
	if f.cut == cutBody && len(body) > 0 {
		_, _ = w.Write(body[:len(body)/2])
		_ = flush()
		reset(w)
		return
	}
	const pieces = 10
	for n := pieces; n > 0 && f.dribble > 0; n-- {
		size := len(body) / n
		_, _ = w.Write(body[:size])
		body = body[size:]
		if flush() != nil || !pauseFor(r, f.dribble/pieces) {
			return
		}
	}
	_, _ = w.Write(body)
}

// pauseFor waits; false where the bridge hung up meanwhile.
func pauseFor(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// withCut is ctx, cancelled too when cut is closed.
func withCut(ctx context.Context, cut <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-cut:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// fixed is an answer that is always the same; header is name, value, ….
func fixed(status int, body string, header ...string) func(*exchange) reply {
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return func(*exchange) reply { return reply{status, h, []byte(body)} }
}

const (
	unknownText = `{"error":"timeout","code":"outcome_unknown"}`
	poolText    = `{"error":"pool"}`
	limitedText = `{"success":false,"error":"rate limited","reason":"rate_limited","results":[]}`
	htmlText    = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
)

// The faults. What says committed reaches the broker, which acts on it; the
// others that change the answer do not.
var (
	noFault          = fault{}
	slowRequest      = fault{name: "delay", delay: 400 * time.Millisecond}
	slowAnswer       = fault{name: "dribbled answer", dribble: 600 * time.Millisecond}
	resetBefore      = fault{name: "reset before the broker", unsent: true, cut: cutAll}
	lostReply        = fault{name: "committed, answer lost", cut: cutAll}
	brokenReply      = fault{name: "committed, answer breaks off", cut: cutBody}
	halfReply        = fault{name: "committed, half an answer", mangle: func(b []byte) []byte { return b[:len(b)/2] }}
	limited          = fault{name: "429", unsent: true, reply: fixed(429, limitedText)}
	limitedFor1s     = fault{name: "429, Retry-After 1", unsent: true, reply: fixed(429, limitedText, "Retry-After", "1")}
	unavailable      = fault{name: "503", unsent: true, reply: fixed(503, `{"error":"no leader","code":"no_leader"}`, "Retry-After", "1")}
	proxyDown        = fault{name: "503 of a proxy", unsent: true, reply: fixed(503, htmlText, "Content-Type", "text/html")}
	badGateway       = fault{name: "502 of a proxy", unsent: true, reply: fixed(502, htmlText, "Content-Type", "text/html")}
	missing          = fault{name: "404 of a proxy", unsent: true, reply: fixed(404, "default backend - 404", "Content-Type", "text/plain")}
	denied           = fault{name: "401", unsent: true, reply: fixed(401, `{"error":"Unauthorized"}`)}
	forbidden        = fault{name: "403", unsent: true, reply: fixed(403, `{"error":"forbidden","code":"insufficient_permissions"}`)}
	unknownUndone    = fault{name: "503 outcome_unknown", unsent: true, reply: fixed(503, unknownText)}
	unknownDone      = fault{name: "committed, 503 outcome_unknown", reply: fixed(503, unknownText)}
	pool             = fault{name: "500 pool", unsent: true, reply: fixed(500, poolText)}
	poolDone         = fault{name: "committed, 500 pool", reply: fixed(500, poolText)}
	garbage          = fault{name: "200 HTML", unsent: true, reply: fixed(200, htmlText, "Content-Type", "text/html")}
	garbageDone      = fault{name: "committed, 200 HTML", reply: fixed(200, htmlText)}
	emptyDone        = fault{name: "committed, 200 without body", reply: fixed(200, "")}
	emptyUndone      = fault{name: "200 without body", unsent: true, reply: fixed(200, "")}
	objectDone       = fault{name: "committed, 200 {}", reply: fixed(200, "{}")}
	nullUndone       = fault{name: "200 null", unsent: true, reply: fixed(200, "null")}
	listDone         = fault{name: "committed, 200 []", reply: fixed(200, "[]")}
	binaryDone       = fault{name: "committed, 200 binary", reply: fixed(200, "\x1f\x8b\x08\x00\x00\xff\xfe\x00\x00")}
	transientRefusal = fault{name: "200 db_error", unsent: true, reply: fixed(200, `{"success":false,"error":"db error","reason":"db_error","results":[]}`)}
	silentDone       = fault{name: "committed, never answered", silent: true}
)

// corrupted is a pop's answer whose first payload is no JSON any more, though
// what stands around it is: as a broken proxy may leave it.
var corrupted = fault{name: "payload corrupted", mangle: func(b []byte) []byte {
	return bytes.Replace(b, []byte(`"data":{`), []byte(`"data":{]`), 1)
}}

// anyCall are the faults that any request may meet.
var anyCall = []fault{
	slowRequest, slowAnswer, resetBefore, lostReply, brokenReply, halfReply, limited, limitedFor1s, unavailable, proxyDown, badGateway,
	missing, denied, forbidden, unknownUndone, unknownDone, pool, poolDone, garbage, garbageDone, emptyDone, emptyUndone, objectDone, nullUndone, listDone, binaryDone,
}

// passing are the faults that pass without an operator and within the time
// that a test waits.
func passing() map[class][]fault {
	catalog := map[class][]fault{}
	for _, c := range allClasses {
		for _, f := range anyCall {
			if !slices.Contains([]string{denied.name, forbidden.name, missing.name}, f.name) {
				catalog[c] = append(catalog[c], f)
			}
		}
	}
	catalog[transaction] = append(catalog[transaction], transientRefusal)
	return catalog
}

// databaseAway is what a real 1.3.0 answers while its database is away.
func databaseAway(c class) fault {
	f := fault{name: "database away", unsent: true, reply: fixed(500, poolText)}
	switch c {
	case popSource, popRetry, popDead:
		f.reply = fixed(204, "")
	case push:
		f.reply = spooled
	case ackOne:
		f.reply = fixed(200, `[{"index":0,"success":false,"error":"pool"}]`)
	case ackBatch:
		f.reply = flushFailed
	case other:
		f.reply = func(x *exchange) reply {
			if x.uri == "/health" {
				return fixed(503, `{"status":"unhealthy","database":"disconnected","engine":"segments-rust","version":"1.3.0"}`)(x)
			}
			return fixed(500, poolText)(x)
		}
	case kv, counts:
		f.reply = poolExhausted("kv")
	case timers, cancel:
		f.reply = poolExhausted("timers")
	}
	return f
}

func poolExhausted(what string) func(*exchange) reply {
	return fixed(503, `{"error":"`+what+`_unavailable","reason":"`+what+`_pool_exhausted"}`, "Retry-After", "1")
}

// spooled says `buffered` for each item of a push; the spool is lost.
func spooled(x *exchange) reply {
	var sent struct {
		Items []struct {
			TransactionID string `json:"transactionId"`
		}
	}
	_ = json.Unmarshal(x.body, &sent)
	var rows []string
	for i, item := range sent.Items {
		rows = append(rows, fmt.Sprintf(`{"index":%d,"message_id":"00000000-0000-0000-0000-000000000000","transaction_id":%q,"status":"buffered"}`, i, item.TransactionID))
	}
	return rowsOf(http.StatusCreated, rows)
}

// flushFailed refuses each ack of a batch for now.
func flushFailed(x *exchange) reply {
	var sent struct {
		Acknowledgments []struct {
			TransactionID string `json:"transactionId"`
		}
	}
	_ = json.Unmarshal(x.body, &sent)
	var rows []string
	for i, a := range sent.Acknowledgments {
		rows = append(rows, fmt.Sprintf(`{"index":%d,"transactionId":%q,"success":false,"error":"ack flush failed; lease will expire and redeliver","dlq":false}`, i, a.TransactionID))
	}
	return rowsOf(http.StatusOK, rows)
}

func rowsOf(status int, rows []string) reply {
	var body bytes.Buffer
	body.WriteByte('[')
	for i, row := range rows {
		if i > 0 {
			body.WriteByte(',')
		}
		body.WriteString(row)
	}
	body.WriteByte(']')
	return reply{status, http.Header{"Content-Type": {"application/json"}}, body.Bytes()}
}
