package bridge_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

func ExampleDecide() {
	policy, problems := bridge.NewPolicy(bridge.Route{
		Retry: bridge.RetryPolicy{MaxAttempts: 3, MaxAge: time.Hour, Backoff: []time.Duration{5 * time.Second, 30 * time.Second}, Jitter: bridge.JitterNone},
	})
	if len(problems) > 0 {
		fmt.Println(problems)
		return
	}
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	for attempt, status := range []int{503, 503, 503} {
		resp := bridge.Response{Status: status, Header: http.Header{}, Sent: true}
		facts := bridge.Facts{Attempt: attempt + 1, FirstFailed: now}
		out := bridge.Decide(resp, facts, policy, now, func() float64 { return 0 })
		fmt.Println(out.Kind, out.Delay, out.Failure.Class, out.Failure.Error)
	}
	// Output:
	// retry 5s http_5xx answered 503
	// retry 30s http_5xx answered 503
	// dead 0s exhausted answered 503
}

func ExampleEvent_AppendPayload() {
	e := bridge.Event{
		ID: "github:1", Source: "github", Type: "push", Class: bridge.ClassVerified, Method: "POST", Path: "/in/github",
		Received: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC), ContentType: "application/json",
		Headers: []bridge.Header{{Name: "x-github-event", Value: "push"}}, Body: []byte(`{"n": 1.50}`),
	}
	payload := e.AppendPayload(nil)
	again, ours, err := bridge.DecodeEvent(payload)
	fmt.Println(string(again.Body), ours, err)
	fmt.Println(string(payload[:60]))
	// Output:
	// {"n": 1.50} true <nil>
	// {"queenbridge":1,"id":"github:1","source":"github","type":"p
}

func ExampleConfig_Check() {
	doc := bridge.Node{}
	doc.Set("stop_timeout", bridge.Node{Kind: bridge.NodeString, Text: "5"})
	doc.Set("dispatch.max_in_flight", bridge.Node{Kind: bridge.NodeNumber, Text: "0"})
	c, problems := bridge.Decode(doc)
	for _, p := range c.Check(problems) {
		fmt.Println(p)
	}
	// Output:
	// stop_timeout: must be a duration such as 30s, got "5"
	// dispatch.max_in_flight: must be 1 or more, got 0
}
