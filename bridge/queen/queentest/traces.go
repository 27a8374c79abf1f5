package queentest

func traceCases() []testCase {
	return []testCase{
		{name: "Trace/RecordAndRead", rule: "queen-contract.md §7.6", run: traceRecord},
		{name: "Trace/Refusals", rule: "queen-contract.md §7.6; queen-real-1.3.md, traces (measured)", run: traceRefusals},
	}
}

func traceRecord(k *kit) {
	_, p := k.five()
	m, name := p.Messages[0], unique("trace")
	got := k.object(k.send("POST", "/api/v1/traces", obj{
		"transactionId": m.TransactionID, "partitionId": m.PartitionID, "consumerGroup": p.Lease.Group,
		"data": obj{"attempt": 1}, "traceNames": arr{name},
	}), 201)
	k.has("answer", got, obj{"success": true}, "traceId")
	k.eventually("the trace is found by its message and by its name", func() bool {
		return k.traces("/api/v1/traces/"+m.PartitionID+"/"+m.TransactionID) == 1 && k.traces("/api/v1/traces/by-name/"+name) == 1
	})
}

// traces counts what a read of traces answers.
func (k *kit) traces(path string) int {
	k.Helper()
	list, _ := k.object(k.send("GET", path, nil), 200)["traces"].(arr)
	return len(list)
}

func traceRefusals(k *kit) {
	for what, body := range map[string]obj{
		"no message":   {"partitionId": "22622f9a-69e8-4c70-9ff1-4c4d8647cf50", "data": 1},
		"no partition": {"transactionId": "a", "data": 1},
	} {
		if r := k.send("POST", "/api/v1/traces", body); r.status != 400 {
			k.Errorf("%s: %v, want 400", what, r)
		}
	}
	if r := k.send("POST", "/api/v1/traces", obj{"transactionId": "a", "partitionId": "zz", "data": 1}); r.status != 500 {
		k.Errorf("a garbage partition: %v, want 500", r)
	}
}
