package queentest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/queenbridge/queenbridge/bridge/queen"
)

func pushCases() []testCase {
	return []testCase{
		{name: "Push/VerdictPerItem", rule: "queen-contract.md §3", run: pushVerdicts},
		{name: "Push/EmptyList", rule: "queen-contract.md §3", run: pushEmptyList},
		{name: "Push/DuplicateIsStoredOnce", rule: "queen-contract.md §3", run: pushDuplicate},
		{name: "Push/SameIdTwiceInOneRequest", rule: "queen-contract.md §3", run: pushTwiceInOne},
		{name: "Push/DedupIsPerPartition", rule: "queen-contract.md §3", run: pushDedupPerPartition},
		{name: "Push/DedupWindowEnds", rule: "queen-contract.md §3", run: pushDedupWindow},
		{name: "Push/DedupOff", rule: "queen-contract.md §2.1, §3", run: pushDedupOff},
		{name: "Push/OneOfManyCopiesIsQueued", rule: "queen-contract.md §3 (measured)", run: pushRace},
		{name: "Push/OrderInAPartition", rule: "queen-contract.md §3", run: pushOrder},
		{name: "Push/OneBadItemRefusesAll", rule: "queen-contract.md §3", run: pushBadItem},
		{name: "Push/LongTransactionId", rule: "queen-contract.md §3", run: pushLongID},
		{name: "Push/OddNames", rule: "queen-contract.md §3 (measured)", run: pushOddNames},
		{name: "Push/DelAndC1Pass", rule: "package queen, \"Where a real 1.3.0 surprises\"", run: pushC1},
		{name: "Push/NameTooLongIsLost", rule: "queen-contract.md §1.6, §3 (measured)", run: pushLongName, only: 1},
		{name: "Push/MissingIdIsMinted", rule: "queen-contract.md §3", run: pushMintedID},
		{name: "Push/EmptyPartitionIsItsOwn", rule: "queen-contract.md §3", run: pushEmptyPartition, only: 1},
		{name: "Push/UnknownFieldsAreIgnored", rule: "queen-contract.md §3 (measured)", run: pushUnknownFields},
	}
}

func pushVerdicts(k *kit) {
	queue := k.queue()
	k.push(queue, "p", "a")
	r := k.send("POST", "/api/v1/push", obj{"items": arr{
		obj{"queue": queue, "partition": "p", "transactionId": "b", "payload": 1},
		obj{"queue": queue, "partition": "p", "transactionId": "a", "payload": 1},
	}})
	got := k.list(r, 201)
	if len(got) != 2 {
		k.Fatalf("answer %v", r)
	}
	k.has("first", got[0], obj{"index": 0.0, "transaction_id": "b", "queueName": queue, "status": "queued"}, "message_id")
	k.has("second", got[1], obj{"index": 1.0, "transaction_id": "a", "queueName": queue, "status": "duplicate"}, "message_id")
}

func pushEmptyList(k *kit) {
	if got := k.list(k.send("POST", "/api/v1/push", `{"items":[]}`), 201); len(got) != 0 {
		k.Errorf("answer %v", got)
	}
}

func pushDuplicate(k *kit) {
	queue := k.queue()
	first := k.tryPush(queue, "p", "a")
	again := k.tryPush(queue, "p", "a", "b")
	k.same("verdicts", []queen.PushStatus{first[0].Status, again[0].Status, again[1].Status}, []queen.PushStatus{queen.PushQueued, queen.PushDuplicate, queen.PushQueued})
	k.same("the duplicate's message id", again[0].MessageID, first[0].MessageID)
	p := k.popIDs(queue, []string{"a", "b"})
	k.same("the stored message's id", p.Messages[0].ID, first[0].MessageID)
	k.ack(p, completed, completed)
	k.same("after consumption", k.tryPush(queue, "p", "a")[0].Status, queen.PushDuplicate)
}

func pushTwiceInOne(k *kit) {
	queue := k.queue()
	got := k.tryPush(queue, "p", "a", "a")
	k.same("verdicts", []queen.PushStatus{got[0].Status, got[1].Status}, []queen.PushStatus{queen.PushQueued, queen.PushDuplicate})
	k.same("message ids", got[1].MessageID, got[0].MessageID)
	k.popIDs(queue, []string{"a"})
}

func pushDedupPerPartition(k *kit) {
	queue := k.queue()
	k.push(queue, "p1", "a")
	k.push(queue, "p2", "a")
}

func pushDedupWindow(k *kit) {
	queue := k.queue(dedup(4 * time.Second))
	k.push(queue, "p", "a")
	k.same("inside the window", k.tryPush(queue, "p", "a")[0].Status, queen.PushDuplicate)
	k.eventually("queued again", func() bool { return k.tryPush(queue, "p", "a")[0].Status == queen.PushQueued })
	k.popIDs(queue, []string{"a", "a"})
}

func pushDedupOff(k *kit) {
	queue := k.queue(dedup(0))
	k.push(queue, "p", "a")
	k.push(queue, "p", "a")
	got := k.tryPush(queue, "p", "b", "b")
	k.same("twice in one request", got[1].Status, queen.PushDuplicate)
	k.popIDs(queue, []string{"a", "a", "b"})
}

func pushRace(k *kit) {
	queue := k.queue()
	var mu sync.Mutex
	count := map[queen.PushStatus]int{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			v, err := k.client.Push(k.Context(), []queen.Item{{Queue: queue, Partition: "p", TransactionID: "a", Payload: []byte(`1`)}})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				k.Error(err)
				return
			}
			count[v[0].Status]++
		})
	}
	wg.Wait()
	k.same("verdicts", count, map[queen.PushStatus]int{queen.PushQueued: 1, queen.PushDuplicate: 7})
}

func pushOrder(k *kit) {
	queue, want := k.queue(), numbered("m", 50)
	k.push(queue, "p", want[:20]...)
	k.push(queue, "p", want[20:]...)
	k.popIDs(queue, want)
}

func pushBadItem(k *kit) {
	queue := k.queue()
	good := fmt.Sprintf(`{"queue":%q,"partition":"p","transactionId":"good","payload":1}`, queue)
	for name, bad := range map[string]string{
		"no payload":                 `{"queue":"` + queue + `","partition":"p","transactionId":"x"}`,
		"no queue":                   `{"partition":"p","transactionId":"x","payload":1}`,
		"NUL in the queue":           `{"queue":"a\u0000b","partition":"p","transactionId":"x","payload":1}`,
		"control in the partition":   `{"queue":"` + queue + `","partition":"a\nb","transactionId":"x","payload":1}`,
		"control in the id":          `{"queue":"` + queue + `","partition":"p","transactionId":"a\tb","payload":1}`,
		"payload is no UTF-8":        `{"queue":"` + queue + `","partition":"p","transactionId":"x","payload":"` + "\xff\xfe" + `"}`,
		"raw control in the payload": `{"queue":"` + queue + `","partition":"p","transactionId":"x","payload":"` + "\x01" + `"}`,
		"payload is no JSON":         `{"queue":"` + queue + `","partition":"p","transactionId":"x","payload":<xml/>}`,
	} {
		if r := k.send("POST", "/api/v1/push", `{"items":[`+good+`,`+bad+`]}`); r.status != 400 {
			k.Errorf("%s: %v", name, r)
		}
	}
	k.none(queue)
}

func pushLongID(k *kit) {
	queue := k.queue()
	longest := strings.Repeat("x", queen.MaxTransactionID)
	k.push(queue, "p", longest)
	r := k.send("POST", "/api/v1/push", obj{"items": arr{obj{"queue": queue, "partition": "p", "transactionId": longest + "x", "payload": 1}}})
	if r.status != 400 {
		k.Errorf("an id of 65,536 bytes: %v", r)
	}
	k.ack(k.popIDs(queue, []string{longest}), completed)
	k.gone(queue, "g")
}

func pushOddNames(k *kit) {
	for _, odd := range []string{"a b/c", "é 漢", "a+b", "a%2Fb?c#d", `q"\`, "..", "a:b,c;d&e=f", "ü🙂"} {
		queue, id := unique(odd), "t/"+odd
		k.push(queue, odd, id)
		p := k.popIDs(queue, []string{id}, pinned(odd), group(odd))
		k.same("partition", p.Messages[0].Partition, odd)
		k.ack(p, completed)
		k.gone(queue, odd)
	}
}

// Only what is below U+0020 is a control character to a push.
func pushC1(k *kit) {
	queue, odd := k.queue(), "a\x7f\u0085b"
	k.push(queue, odd, odd)
	k.complete(k.popIDs(queue, []string{odd}, pinned(odd)))
	k.gone(queue, "g")
}

func pushLongName(k *kit) {
	queue := unique(strings.Repeat("x", 250))
	r := k.send("POST", "/api/v1/push", obj{"items": arr{obj{"queue": queue, "partition": "p", "transactionId": "a", "payload": 1}}})
	got := k.list(r, 201)
	if len(got) != 1 || got[0]["status"] != "buffered" {
		k.Errorf("answer %v, want buffered", r)
	}
	_, err := k.client.Push(k.Context(), []queen.Item{{Queue: queue, Partition: "p", TransactionID: "a", Payload: []byte(`1`)}})
	if err == nil || queen.Uncertain(err) {
		k.Errorf("the client let it pass: %v", err)
	}
}

func pushMintedID(k *kit) {
	queue := k.queue()
	got := k.list(k.send("POST", "/api/v1/push", obj{"items": arr{obj{"queue": queue, "partition": "p", "payload": 1}}}), 201)
	if id, _ := got[0]["transaction_id"].(string); id == "" || got[0]["message_id"] != id {
		k.Errorf("verdict %v, want the message id as transaction id", got[0])
	}
}

func pushEmptyPartition(k *kit) {
	queue := k.queue()
	k.list(k.send("POST", "/api/v1/push", obj{"items": arr{
		obj{"queue": queue, "partition": "", "transactionId": "a", "payload": 1},
		obj{"queue": queue, "transactionId": "a", "payload": 1},
	}}), 201)
	p := k.tryPop(queue, partitions(10), waiting(patience))
	got := map[string]bool{}
	for _, m := range p.Messages {
		got[m.Partition] = true
	}
	k.same("partitions", got, map[string]bool{"": true, "Default": true})
}

func pushUnknownFields(k *kit) {
	queue := k.queue()
	got := k.list(k.send("POST", "/api/v1/push", obj{"items": arr{obj{"queue": queue, "partition": "p", "transactionId": "a", "payload": 1,
		"traceId": "014262ee-8ee8-4bcb-beca-7a868837c741", "headers": obj{"x": 1}, "producerSub": "me"}}}), 201)
	k.has("verdict", got[0], obj{"status": "queued"})
}

func payloadCases() []testCase {
	return []testCase{
		{name: "Payload/PushKeepsBytes", rule: "queen-contract.md §3 (measured)", run: payloadPushKeepsBytes},
		{name: "Payload/TransactionPushReencodes", rule: "queen-contract.md §8 (measured)", run: payloadTransactionReencodes},
		{name: "Payload/TransactionPushRefusesWhatItCannotStore", rule: "queen-contract.md §8 (measured)", run: payloadTransactionRefuses},
		{name: "Payload/TenMegabytes", rule: "queen-real-1.3.md, Push (measured)", run: payloadTenMegabytes, alone: true},
	}
}

// exactForms are the forms measured to come back byte for byte.
func exactForms() []string {
	return []string{
		`{"z":1,"a":2,"m":{"y":1,"b":2}}`, `{"a":1,"a":2}`, `{ "a" : [ 1 , 2 ] }`, `12345678901234567890123456789`, `9007199254740993`,
		`1.10`, `1e400`, `-0`, `0.1e-7`, `"a\u0000b"`, `"\ud800"`, `"\u00e9é\/"`, `null`, `true`, `[]`, `{}`, `""`, "\"tab\\tline\\n\"",
		`"<>&\u2028"`, `"` + strings.Repeat("ü", 5000) + `"`, strings.Repeat("[", 100) + strings.Repeat("]", 100),
	}
}

func payloadPushKeepsBytes(k *kit) {
	queue := k.queue()
	var items []queen.Item
	for i, form := range exactForms() {
		items = append(items, queen.Item{Queue: queue, Partition: "p", TransactionID: fmt.Sprint(i), Payload: json.RawMessage(form)})
	}
	_, err := k.client.Push(k.Context(), items)
	k.must(err)
	p := k.pop(queue)
	for i, form := range exactForms() {
		if i >= len(p.Messages) || string(p.Messages[i].Data) != form {
			k.Fatalf("payload %d: %s, want %s", i, p.Messages[i].Data, cut([]byte(form)))
		}
	}
}

func payloadTransactionReencodes(k *kit) {
	queue := k.queue()
	k.commit(queen.Transaction{Pushes: []queen.Item{{Queue: queue, Partition: "p", TransactionID: "t",
		Payload: []byte(`{ "z":1,"a":{"y":1,"b":2}, "z":3, "s":"\u00e9" }`)}}})
	p := k.popIDs(queue, []string{"t"})
	var got, want any
	k.must(json.Unmarshal(p.Messages[0].Data, &got))
	k.must(json.Unmarshal([]byte(`{"a":{"b":2,"y":1},"s":"é","z":3}`), &want))
	k.same("value", got, want) // the bytes are the broker's own
}

func payloadTransactionRefuses(k *kit) {
	queue := k.queue()
	for _, payload := range []string{`"\ud800"`, `1e400`} {
		r := k.send("POST", "/api/v1/transaction", `{"operations":[{"type":"push","items":[{"queue":"`+queue+`","partition":"p","transactionId":"ok","payload":1},`+
			`{"queue":"`+queue+`","partition":"p","transactionId":"bad","payload":`+payload+`}]}]}`)
		if r.status != 400 {
			k.Errorf("%s: %v", payload, r)
		}
	}
	k.none(queue)
}

func payloadTenMegabytes(k *kit) {
	queue := k.queue()
	payload := `"` + strings.Repeat("0123456789", 1<<20) + `"`
	_, err := k.client.Push(k.Context(), []queen.Item{{Queue: queue, Partition: "p", TransactionID: "t", Payload: json.RawMessage(payload)}})
	k.must(err)
	if p := k.popIDs(queue, []string{"t"}); string(p.Messages[0].Data) != payload {
		k.Errorf("%d bytes came back, want %d", len(p.Messages[0].Data), len(payload))
	}
}
