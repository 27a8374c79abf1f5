package signing_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/signing"
)

// event is the id and type of one queued event; body is its text.
type event struct{ ID, Type, Body string }

// eventsOf are the events of a request by the preset alone.
func eventsOf(t *testing.T, o signing.Options, r *signing.Request) []event {
	t.Helper()
	v, problems := signing.New(o)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p, _ := signing.Lookup(o.Scheme)
	values := v.Values(r)
	items, split := v.Items(values)
	if !split {
		f := facts{values: values, body: r.Body}
		kind, _, _ := f.eval(p.EventType)
		return []event{{f.transactionID(p.Name, p.TransactionID), kind, string(r.Body)}}
	}
	all := []event{}
	for i := range items {
		f := facts{values: values, body: r.Body, item: &items[i]}
		kind, _, _ := f.eval(p.EventType)
		all = append(all, event{f.transactionID(p.Name, p.TransactionID), kind, string(items[i].Raw())})
	}
	return all
}

func TestPresetItems(t *testing.T) {
	t.Parallel()
	shaOf := func(scheme, text string) string { return scheme + ":sha256:" + sumOf([]byte(text)) }
	const messages = `{"field":"messages","value":{"messages":[{"id":"wamid.1"},{"id":"wamid.2"}]}}`
	const statuses = `{"field":"messages","value":{"statuses":[{"id":"wamid.1","status":"read"},{"id":"wamid.3"}]}}`
	const feed = `{"field":"feed","value":{}}`
	tests := []struct {
		name, scheme, contentType, body string
		want                            []event
	}{
		{"meta messages", "meta", "", `{"entry":[{"id":"7","time":9,"changes":[` + messages + "," + statuses + "," + feed + `]}]}`, []event{
			{"meta:8:messages,7:wamid.1,7:wamid.2", "messages", messages}, {"meta:8:statuses,7:wamid.1,4:read,7:wamid.3,0:", "messages", statuses},
			{"meta:1:7,4:feed,1:9,64:" + sumOf([]byte(feed)), "feed", feed},
		}},
		{"meta, messages without ids", "meta", "", `{"entry":[{"id":"7","changes":[{"field":"messages","value":{"messages":[{"id":"a"},{"x":1}],"statuses":[]}}]}]}`, []event{
			{"meta:1:7,8:messages,0:,64:" + sumOf([]byte(`{"field":"messages","value":{"messages":[{"id":"a"},{"x":1}],"statuses":[]}}`)), "messages", `{"field":"messages","value":{"messages":[{"id":"a"},{"x":1}],"statuses":[]}}`},
		}},
		{"messenger", "meta", "", `{"object":"page","entry":[{"id":"7","messaging":[{"message":{"mid":"m_1"}},{"delivery":{}}]}]}`, []event{
			{"meta:7:message,3:m_1", "messaging", `{"message":{"mid":"m_1"}}`}, {"meta:1:7,9:messaging,64:" + sumOf([]byte(`{"delivery":{}}`)), "messaging", `{"delivery":{}}`},
		}},
		{"meta, both", "meta", "", `{"entry":[{"id":"7","messaging":[{"message":{"mid":"b"}}],"changes":[` + messages + `]}]}`, []event{{"meta:8:messages,7:wamid.1,7:wamid.2", "messages", messages}, {"meta:7:message,1:b", "messaging", `{"message":{"mid":"b"}}`}}},
		{"meta, no entry", "meta", "", `{"object":"page"}`, []event{{shaOf("meta", `{"object":"page"}`), "", `{"object":"page"}`}}},
		{"meta, empty", "meta", "", `{"entry":[]}`, []event{}},
		{"meta, empty changes", "meta", "", `{"entry":[{"id":"1","changes":[]}]}`, []event{}},
		{"meta, of another kind", "meta", "", `{"entry":[{"id":"1","standby":[{}]}]}`, []event{{shaOf("meta", `{"entry":[{"id":"1","standby":[{}]}]}`), "", `{"entry":[{"id":"1","standby":[{}]}]}`}}},
		{"telegram", "telegram", "", `{"update_id":706981133,"edited_message":{}}`, []event{{"telegram:706981133", "edited_message", `{"update_id":706981133,"edited_message":{}}`}}},
		{"telegram, the key first", "telegram", "", `{"poll":{},"update_id":1}`, []event{{"telegram:1", "poll", `{"poll":{},"update_id":1}`}}},
		{"telegram, no other key", "telegram", "", `{"update_id":1}`, []event{{"telegram:1", "", `{"update_id":1}`}}},
		{"telegram, a list", "telegram", "", `[1]`, []event{{shaOf("telegram", `[1]`), "", `[1]`}}},
		{"mandrill", "mandrill", form, "mandrill_events=%5B%7B%22_id%22%3A%221%22%2C%22event%22%3A%22open%22%2C%22ts%22%3A5%7D%2C+7%5D", []event{{"mandrill:1:1,4:open,1:5", "open", `{"_id":"1","event":"open","ts":5}`}, {shaOf("mandrill", "7"), "", "7"}}},
		{"mandrill, no array", "mandrill", form, "mandrill_events=x", []event{{shaOf("mandrill", "mandrill_events=x"), "", "mandrill_events=x"}}},
		{"mandrill, no form", "mandrill", "", "mandrill_events=%5B%5D", []event{{shaOf("mandrill", "mandrill_events=%5B%5D"), "", "mandrill_events=%5B%5D"}}},
		{"auth0 lines", "auth0", "application/x-ndjson; charset=utf-8", "{\"log_id\":\"1\",\"data\":{\"type\":\"s\"}}\r\n\n {\"log_id\":\"2\"}", []event{{"auth0:1", "s", `{"log_id":"1","data":{"type":"s"}}`}, {"auth0:2", "", `{"log_id":"2"}`}}},
		{"auth0, a line that is none", "auth0", "application/x-ndjson", "{\"log_id\":\"1\"}\nx", []event{{shaOf("auth0", "{\"log_id\":\"1\"}\nx"), "", "{\"log_id\":\"1\"}\nx"}}},
		{"auth0 list", "auth0", "application/json", `[{"log_id":"1"}]`, []event{{"auth0:1", "", `{"log_id":"1"}`}}},
		{"auth0, no lines", "auth0", "application/x-ndjson", "\n", []event{}},
		{"cloudevents, one", "cloudevents", "application/cloudevents+json", `{"source":"s","id":"1","type":"t"}`, []event{{"cloudevents:1:s,1:1", "t", `{"source":"s","id":"1","type":"t"}`}}},
		{"cloudevents, batch", "cloudevents", "Application/CloudEvents-Batch+JSON; charset=UTF-8", `[{"source":"s","id":"1","type":"t"},{"source":"s","id":"2"}]`, []event{{"cloudevents:1:s,1:1", "t", `{"source":"s","id":"1","type":"t"}`}, {"cloudevents:1:s,1:2", "", `{"source":"s","id":"2"}`}}},
		{"cloudevents, a list in another mode", "cloudevents", "application/json", `[{"source":"s","id":"1"}]`, []event{{shaOf("cloudevents", `[{"source":"s","id":"1"}]`), "", `[{"source":"s","id":"1"}]`}}},
		{"sendgrid, no list", "sendgrid", "", `{"sg_event_id":"1","event":"open"}`, []event{{"sendgrid:1", "open", `{"sg_event_id":"1","event":"open"}`}}},
		{"asana heartbeat", "asana", "", `{"events":[]}`, []event{}},
		{"graph", "ms-graph", "", `{"value":[{"subscriptionId":"s","resource":"r","changeType":"updated","resourceData":{"@odata.etag":"W/1"}},{"id":"i","subscriptionId":"s"},{"x":1}]}`, []event{
			{"ms-graph:1:s,1:r,7:updated,3:W/1", "updated", `{"subscriptionId":"s","resource":"r","changeType":"updated","resourceData":{"@odata.etag":"W/1"}}`}, {"ms-graph:1:s,1:i", "", `{"id":"i","subscriptionId":"s"}`}, {shaOf("ms-graph", `{"x":1}`), "", `{"x":1}`},
		}},
	}
	for _, tt := range tests {
		r := &signing.Request{Method: "POST", Header: http.Header{}, Body: []byte(tt.body)}
		if tt.contentType != "" {
			r.Header.Set("Content-Type", tt.contentType)
		}
		if diff := cmp.Diff(tt.want, eventsOf(t, optionsFor(t, tt.scheme), r)); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", tt.name, diff)
		}
	}
}

// Discord's answers depend on what was sent.
func TestAnswers(t *testing.T) {
	t.Parallel()
	v, _ := signing.New(optionsFor(t, "discord"))
	for body, want := range map[string]string{
		`{"type":2}`: `{"type":5}`, `{"type":5,"data":{}}`: `{"type":5}`, `{"type":3}`: `{"type":6}`, `{"type":4}`: `{"type":8,"data":{"choices":[]}}`,
		`{"type":2,"event":{}}`: "", `{"type":1,"event":{"type":"x"}}`: "", `{"type":9}`: "", `{"type":"2"}`: "", `[]`: "", `x`: "", ``: "",
	} {
		answer, ok := v.Answer(&signing.Request{Method: "POST", Body: []byte(body)})
		if ok != (want != "") || answer.Body != want || ok && (answer.Status != 200 || answer.ContentType != "application/json") {
			t.Errorf("Answer(%s) = %+v, %t, want %q", body, answer, ok, want)
		}
	}
	adobe, _ := signing.New(optionsFor(t, "adobe-sign"))
	answer, ok := adobe.Answer(&signing.Request{Header: http.Header{"X-Adobesign-Clientid": {" CLIENT2 "}}})
	if !ok || answer.Status != 200 || answer.Body != "" || answer.Header.Get("X-AdobeSign-ClientId") != "CLIENT2" {
		t.Errorf("Answer(adobe-sign) = %+v, %t", answer, ok)
	}
	if answer, ok := mustNew(t, optionsFor(t, "github")).Answer(&signing.Request{}); ok {
		t.Errorf("Answer(github) = %+v, want the preset's", answer)
	}
}

func mustNew(t *testing.T, o signing.Options) *signing.Verifier {
	t.Helper()
	v, problems := signing.New(o)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return v
}

// What is answered to requests that are not proven.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, p := range signing.Presets() {
		want := map[string]signing.Answer{"gocardless": {Status: 498, Body: "invalid signature", ContentType: "text/plain"}, "xero": {Status: 401}}[p.Name]
		if diff := cmp.Diff(want, p.Refusal); diff != "" {
			t.Errorf("%s: Refusal (-want +got):\n%s", p.Name, diff)
		}
	}
}
