package queentest

import (
	"io"
	"net/http"
	"strings"
)

func healthCases() []testCase {
	return []testCase{
		{name: "Health/SaysEngineAndVersion", rule: "queen-contract.md §1.1", run: healthSaysEngineAndVersion},
		{name: "Health/Probe", rule: "queen-contract.md §1.3", run: healthProbe},
		{name: "Health/EveryAnswerHasADate", rule: "queen-contract.md §0", run: healthDate},
	}
}

func healthSaysEngineAndVersion(k *kit) {
	got := k.object(k.send("GET", "/health", nil), 200)
	k.has("health", got, obj{"status": "healthy"})
	for _, name := range []string{"engine", "version"} {
		if s, ok := got[name].(string); !ok || s == "" {
			k.Errorf("%s is %v", name, got[name])
		}
	}
}

func healthProbe(k *kit) {
	h, err := k.client.Probe(k.Context())
	if err != nil || !h.Healthy {
		k.Errorf("Probe() = %+v, %v", h, err)
	}
}

func healthDate(k *kit) {
	for _, path := range []string{"/health", "/api/v1/pop/queue/" + unique("q") + "?consumerGroup=g"} {
		if r := k.send("GET", path, nil); r.header.Get("Date") == "" {
			k.Errorf("%s: no Date in %v", path, r.header)
		}
	}
}

func errorCases() []testCase {
	return []testCase{
		{name: "Errors/UnknownRoute", rule: "queen-contract.md §1.5", run: errorsUnknownRoute},
		{name: "Errors/WrongMethod", rule: "queen-contract.md §0 (measured)", run: errorsWrongMethod},
		{name: "Errors/BadQueryIsText", rule: "queen-contract.md §0 (measured)", run: errorsBadQuery},
		{name: "Errors/MalformedBody", rule: "queen-contract.md §1.5", run: errorsMalformedBody},
		{name: "Errors/ContentTypeIsIgnored", rule: "queen-contract.md §0 (measured)", run: errorsContentType},
		{name: "Errors/BodyLimit", rule: "queen-contract.md §0 (measured)", run: errorsBodyLimit, alone: true},
		{name: "Errors/GzipIsNotDecoded", rule: "queen-contract.md §0 (measured)", run: errorsGzip},
	}
}

func errorsUnknownRoute(k *kit) {
	want := obj{"error": "Not Found", "code": "no_such_route"}
	for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
		k.same(method+" of an unknown route", k.object(k.send(method, "/api/v1/nope", nil), 404), want)
	}
}

func errorsWrongMethod(k *kit) {
	r := k.send("GET", "/api/v1/push", nil)
	if r.status != 405 || len(r.body) > 0 || !strings.Contains(r.header.Get("Allow"), "POST") {
		k.Errorf("GET push: %v, Allow %q; want 405 without body, Allow POST", r, r.header.Get("Allow"))
	}
}

func errorsBadQuery(k *kit) {
	for _, query := range []string{"batch=abc", "wait=1", "wait=yes", "partitions=x", "timeout=1.5"} {
		r := k.send("GET", "/api/v1/pop/queue/"+unique("q")+"?consumerGroup=g&"+query, nil)
		if r.status != 400 || !strings.HasPrefix(r.header.Get("Content-Type"), "text/plain") ||
			!strings.HasPrefix(string(r.body), "Failed to deserialize query string:") {
			k.Errorf("pop with %s: %v, %s", query, r, r.header.Get("Content-Type"))
		}
	}
}

func errorsMalformedBody(k *kit) {
	for path, code := range map[string]string{"/api/v1/push": "", "/api/v1/ack/batch": "", "/api/v1/transaction": "", "/api/v1/configure": "", "/api/v1/timers": "timers_bad_request", "/api/v1/kv": "kv_bad_request"} {
		r := k.send("POST", path, "{bad")
		got := k.object(r, 400)
		text, _ := got["error"].(string)
		if text == "" || code != "" && text != code {
			k.Errorf("%s: %v", path, r)
		}
	}
}

func errorsContentType(k *kit) {
	queue := k.queue()
	req, err := http.NewRequestWithContext(k.Context(), http.MethodPost, k.broker.URL+"/api/v1/push",
		strings.NewReader(`{"items":[{"queue":"`+queue+`","partition":"p","transactionId":"t","payload":1}]}`))
	k.must(err)
	req.Header.Set("Content-Type", "text/csv")
	res, err := k.http.RoundTrip(req)
	k.must(err)
	_ = res.Body.Close()
	k.same("status", res.StatusCode, 201)
	k.popIDs(queue, []string{"t"})
}

// The broker answers before it has read everything, and then drops the
// connection: whether the answer arrives before the broken pipe is a race.
func errorsBodyLimit(k *kit) {
	body := `{"items":[{"queue":"q","payload":"` + strings.Repeat("x", 66<<20) + `"}]}`
	k.eventually("an answer", func() bool {
		req, err := http.NewRequestWithContext(k.Context(), http.MethodPost, k.broker.URL+"/api/v1/push", strings.NewReader(body))
		k.must(err)
		req.Close = true
		res, err := k.bare.RoundTrip(req)
		if err != nil {
			return false
		}
		defer func() { _ = res.Body.Close() }()
		text, _ := io.ReadAll(res.Body)
		if res.StatusCode != http.StatusRequestEntityTooLarge || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") || !strings.Contains(string(text), "length limit exceeded") {
			k.Errorf("a body of 66 MiB: %d %s, %s", res.StatusCode, cut(text), res.Header.Get("Content-Type"))
		}
		return true
	})
}

func errorsGzip(k *kit) {
	if r := k.send("POST", "/api/v1/push", "\x1f\x8b\x08\x00\x00\x00\x00\x00"); r.status != 400 {
		k.Errorf("gzip: %v", r)
	}
}
