package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// received is a request as the handler sees it.
type received struct {
	Method, Target, Host, Remote, Body string
	Header                             http.Header
}

func readEvent(t testing.TB, name string) []byte {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("testdata", "events", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func requestOf(t *testing.T, doc []byte) (event, received) {
	t.Helper()
	e, err := decodeEvent(doc)
	if err != nil {
		t.Fatalf("decodeEvent: %v", err)
	}
	r, err := e.request()
	if err != nil {
		t.Fatalf("request: %v", err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if r.ContentLength != int64(len(body)) {
		t.Errorf("ContentLength %d of a body of %d bytes", r.ContentLength, len(body))
	}
	if path, query, _ := strings.Cut(r.RequestURI, "?"); r.URL.EscapedPath() != path || r.URL.RawQuery != query {
		t.Errorf("URL %s, want that of %s", r.URL, r.RequestURI)
	}
	return e, received{Method: r.Method, Target: r.RequestURI, Host: r.Host, Remote: r.RemoteAddr, Body: string(body), Header: r.Header}
}

// TestEachEventIsTheRequestItWas: documents of every kind, after what AWS
// publishes and sends.
func TestEachEventIsTheRequestItWas(t *testing.T) {
	t.Parallel()
	const gateway, httpAPI = "a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com", "f6g7h8.execute-api.eu-west-1.amazonaws.com"
	for name, want := range map[string]struct {
		kind kind
		received
	}{
		"rest-api": {format1, received{
			Method: "POST", Host: gateway, Remote: "203.0.113.7:0",
			Target: "/in/twilio?tag=a&tag=b%20c&city=K%C3%B6ln%2FS%C3%BCd&sum=1%2B1&flag=",
			Body:   "From=%2B4917012345&Body=Gr%C3%BC%C3%9Fe+aus+K%C3%B6ln+%2F+50%25&Body=zwei",
			Header: http.Header{
				"Content-Type": {"application/x-www-form-urlencoded; charset=UTF-8"}, "User-Agent": {"TwilioProxy/1.1"},
				"X-Amzn-Trace-Id": {"Root=1-67af1b2c-5d3e4f6a7b8c9d0e1f2a3b4c"}, "X-Forwarded-For": {"198.51.100.1, 203.0.113.7"},
				"X-Forwarded-Port": {"443"}, "X-Forwarded-Proto": {"https"},
				"X-Twilio-Signature": {"0/KCTR6DLpKmkAf8muzZqo1nDgQ="}, "X-Name": {"Jürgen", "zwei"},
			},
		}},
		"rest-api-custom-domain": {format1, received{
			Method: "POST", Host: "hooks.example.com", Remote: "203.0.113.7:0", Target: "/in/github/",
			Body: "{\"text\":\"café 🎉 <a/b>\",\"raw\":\"\xff\x00\"}\r\n",
			Header: http.Header{
				"Content-Type": {"application/octet-stream"}, "X-Github-Event": {"push"},
				"X-Github-Delivery": {"72d3162e-cc78-11e3-81ab-4c9367dc0958"},
			},
		}},
		"http-api-format-1": {format1, received{
			Method: "POST", Host: httpAPI, Remote: "[2001:db8::7]:0", Target: "/in/github", Body: "{}",
			Header: http.Header{"Content-Type": {"application/json"}, "Content-Length": {"2"}},
		}},
		"http-api": {format2, received{
			Method: "POST", Host: httpAPI, Remote: "203.0.113.7:0",
			Target: "/in/github?tag=a&tag=b+c&city=K%C3%B6ln%2FS%c3%bcd&flag&d=%zz",
			Body:   `{"text":"é + %2F"}`,
			Header: http.Header{
				"Accept": {"*/*"}, "Content-Type": {"application/json"}, "Cookie": {"sid=1; theme=dark"},
				"X-Github-Event": {"push"}, "X-Name": {"Jürgen,zwei"}, "X-Forwarded-For": {"203.0.113.7"},
				"X-Forwarded-Port": {"443"}, "X-Forwarded-Proto": {"https"},
			},
		}},
		"http-api-get": {format2, received{
			Method: "GET", Host: httpAPI, Remote: "203.0.113.7:0",
			Target: "/in/meta?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=me%26you",
			Header: http.Header{"Content-Length": {"0"}},
		}},
		"function-url": {format2, received{
			Method: "POST", Host: "abcdefghijklmnopqrstuvwxyz012345.lambda-url.eu-west-1.on.aws", Remote: "203.0.113.7:0",
			Target: "/in/stripe?a=1&a=2&x=%2F+%C3%A9",
			Body:   "{\n  \"id\": \"evt_1\",\n  \"name\": \"Zoë \\u00e9 \\/ 🎉\"\n}",
			Header: http.Header{
				"Content-Type": {"application/json; charset=utf-8"}, "Stripe-Signature": {"t=1771065084,v1=5257a869,v0=6ffbb59b"},
				"X-Amzn-Tls-Version": {"TLSv1.3"}, "X-Forwarded-For": {"203.0.113.7"}, "X-Forwarded-Port": {"443"}, "X-Forwarded-Proto": {"https"},
			},
		}},
		"load-balancer": {balancer, received{
			Method: "POST", Host: "hooks.example.com", Remote: "203.0.113.7:0",
			Target: "/in/slack?tag=b+c&city=K%C3%B6ln%2FS%c3%bcd&flag=",
			Body:   `{"text":"é + %2F"}`,
			Header: http.Header{
				"Content-Type": {"application/json"}, "Content-Length": {"19"}, "User-Agent": {"Slackbot 1.0 (+https://api.slack.com/robots)"},
				"X-Amzn-Trace-Id": {"Root=1-67af1b2c-5d3e4f6a7b8c9d0e1f2a3b4c"}, "X-Forwarded-For": {"10.9.8.7, 203.0.113.7"},
				"X-Forwarded-Port": {"443"}, "X-Forwarded-Proto": {"https"}, "X-Name": {"zwei"},
			},
		}},
		"load-balancer-multi": {balancerMulti, received{
			Method: "POST", Host: "hooks.example.com", Remote: "203.0.113.7:51234",
			Target: "/in/slack?tag=a&tag=b+c&city=K%C3%B6ln%2FS%c3%bcd",
			Body:   "\x1f\x8b\x08\x00\xff",
			Header: http.Header{
				"Content-Type": {"application/gzip"}, "Content-Length": {"19"}, "User-Agent": {"Slackbot 1.0 (+https://api.slack.com/robots)"},
				"X-Amzn-Trace-Id": {"Root=1-67af1b2c-5d3e4f6a7b8c9d0e1f2a3b4c"}, "X-Forwarded-For": {"10.9.8.7", "203.0.113.7:51234"},
				"X-Forwarded-Port": {"443"}, "X-Forwarded-Proto": {"https"}, "X-Name": {"Jürgen", "zwei"},
			},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, got := requestOf(t, readEvent(t, name))
			if e.kind != want.kind {
				t.Errorf("kind %d, want %d", e.kind, want.kind)
			}
			if diff := cmp.Diff(want.received, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsNoRequestIsNamed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ doc, want string }{
		"sqs":           {`{"Records":[{"body":"secret-value","eventSource":"aws:sqs"}]}`, `has the fields ["Records"]`},
		"mapped body":   {`{"zen":"secret-value","hook_id":1}`, `has the fields ["hook_id", "zen"]`},
		"console test":  {`{"key1":"value1","key2":"value2","key3":"value3"}`, `["key1", "key2", "key3"]`},
		"empty":         {`{}`, "has the fields []"},
		"null":          {`null`, "has the fields []"},
		"authorizer":    {`{"type":"REQUEST","methodArn":"arn","httpMethod":"POST","path":"/in/a","requestContext":{"identity":{}}}`, "methodArn"},
		"authorizer 2":  {`{"version":"2.0","type":"REQUEST","routeArn":"arn","rawPath":"/in/a","requestContext":{"http":{"method":"POST"}}}`, "routeArn"},
		"websocket":     {`{"requestContext":{"routeKey":"$connect","connectionId":"c","identity":{"sourceIp":"1.2.3.4"}},"body":"x"}`, "requestContext"},
		"cut":           {`{"version":"2.0","rawPath":"/in/se`, "at byte"},
		"no JSON":       {`hello`, "at byte 0 of 5"},
		"trailing":      {`{} {}`, "at byte 3 of 5"},
		"list":          {`[]`, "another form"},
		"twice":         {`{"version":"2.0","version":"2.0"}`, "duplicate"},
		"header number": {`{"headers":{"a":1}}`, "/headers/a has another form"},
		"headers list":  {`{"headers":["a"]}`, "/headers"},
		"not UTF-8":     {"{\"body\":\"secret-value\xff\"}", "at byte"},
		"surrogate":     {`{"body":"secret-value\ud800"}`, "at byte"},
		"no base64": {`{"version":"2.0","rawPath":"/in/a","requestContext":{"http":{"method":"POST"}},"body":"secret-value?","isBase64Encoded":true}`,
			"no base64"},
		"base64 in lines": {`{"version":"2.0","rawPath":"/in/a","requestContext":{"http":{"method":"POST"}},"body":"aGVs\nbG8=","isBase64Encoded":true}`,
			"no base64"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := decodeEvent([]byte(tc.doc))
			if err == nil {
				t.Fatalf("decodeEvent = %+v, want an error", e)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %q, want one with %q", err, tc.want)
			}
			if strings.Contains(err.Error(), "secret-value") {
				t.Errorf("error %q shows a value", err)
			}
		})
	}
}

// TestWhatAListenerRefusesIs400: the requests that net/http never hands on.
func TestWhatAListenerRefusesIs400(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*event){
		"path":         func(e *event) { e.path = "/in/%zz" },
		"method":       func(e *event) { e.method = "PO ST" },
		"no method":    func(e *event) { e.method = "" },
		"header name":  func(e *event) { e.header["a b"] = []string{"c"} },
		"header value": func(e *event) { e.header["A"] = []string{"b\x00"} },
		"header lines": func(e *event) { e.header["A"] = []string{"b\r\nc"} },
		"certificate":  func(e *event) { e.certificate = "x" },
	} {
		e, err := decodeEvent(readEvent(t, "http-api"))
		if err != nil {
			t.Fatal(err)
		}
		change(&e)
		if _, err := e.request(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestPathsStartWhereTheSourceIs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ path, stage, want string }{
		{"/in/a", "", "/in/a"},
		{"/in/a", "prod", "/in/a"},
		{"/prod/in/a", "prod", "/in/a"},
		{"/prod/in/a/", "prod", "/in/a/"},
		{"/in/in/a", "in", "/in/a"}, // a stage called in
		{"/in/in", "in", "/in/in"},  // and a source
		{"/in/in/a", "prod", "/in/in/a"},
		{"/hooks/v1/in/a", "prod", "/in/a"},
		{"/in/a%2Fb", "", "/in/a%2Fb"},
		{"/in/a b?c#d", "", "/in/a%20b%3Fc%23d"},
		{"/in/é", "", "/in/%C3%A9"},
		{"/", "", "/"},
		{"", "", "/"},
		{"in/a", "", "/in/a"},
		{"/login", "", "/login"},
	} {
		if got := sourcePath(tc.path, tc.stage); got != tc.want {
			t.Errorf("sourcePath(%q, %q) = %q, want %q", tc.path, tc.stage, got, tc.want)
		}
	}
}

// TestAQueryStaysInItsLine: a gateway that decodes too much must not make
// another request of it.
func TestAQueryStaysInItsLine(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"a=b c", "a=b#c", "a=b\r\nc", "a=é"} {
		doc, err := json.Marshal(map[string]any{
			"version": "2.0", "rawPath": "/in/a", "rawQueryString": query,
			"requestContext": map[string]any{"http": map[string]any{"method": "POST"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, r := requestOf(t, doc); r.Target != "/in/a?"+strings.NewReplacer(" ", "%20", "#", "%23", "\r\n", "%0D%0A", "é", "%C3%A9").Replace(query) {
			t.Errorf("query %q became %q", query, r.Target)
		}
	}
}

// TestAnAddressThatIsNoneIsNobodys: an allow-list must refuse it.
func TestAnAddressThatIsNoneIsNobodys(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"203.0.113.7": "203.0.113.7:0", "203.0.113.7:5": "203.0.113.7:5", "2001:db8::7": "[2001:db8::7]:0",
		"[2001:db8::7]:5": "[2001:db8::7]:5", "": ":0", "unknown": ":0", "localhost:1": ":0",
	} {
		if got := remoteAddr(address); got != want {
			t.Errorf("remoteAddr(%q) = %q, want %q", address, got, want)
		}
	}
}

// FuzzDecodeEvent: whatever arrives is a request or an error, and a request
// holds the body of the document.
func FuzzDecodeEvent(f *testing.F) {
	files, err := filepath.Glob("testdata/events/*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no event documents: %v", err)
	}
	for _, file := range files {
		doc, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		e, err := decodeEvent(doc)
		if err != nil {
			return
		}
		if !strings.HasPrefix(e.path, "/") {
			t.Errorf("path %q", e.path)
		}
		r, err := e.request()
		if err != nil {
			return
		}
		if strings.ContainsAny(r.RequestURI, " \t\r\n#") {
			t.Errorf("target %q", r.RequestURI)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != string(e.body) {
			t.Errorf("body %q, %v; want %q", body, err, e.body)
		}
		var a answer
		_, _ = a.Write(body)
		if _, err := a.encode(e); err != nil {
			t.Errorf("encode: %v", err)
		}
	})
}
