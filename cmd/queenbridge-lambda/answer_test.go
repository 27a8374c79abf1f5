package main

import (
	"net/http"
	"testing"
)

// TestEachKindIsAnsweredInItsForm: byte for byte.
func TestEachKindIsAnsweredInItsForm(t *testing.T) {
	t.Parallel()
	ok := func(w http.ResponseWriter) {
		w.Header()["Content-Type"] = []string{"text/xml"}
		w.Header()["Content-Length"] = []string{"8"}
		w.Header()["Connection"] = []string{"close"}
		w.Header()["X-Two"] = []string{"a", "b"}
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte(`<é&"/>`))
	}
	none := func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) }
	for _, tc := range []struct {
		name   string
		kind   kind
		method string
		answer func(http.ResponseWriter)
		want   string
	}{
		{"format 1", format1, "POST", ok,
			`{"statusCode":200,"multiValueHeaders":{"Content-Type":["text/xml"],"X-Two":["a","b"]},"body":"<é&\"/>","isBase64Encoded":false}`},
		{"format 2", format2, "POST", ok,
			`{"statusCode":200,"headers":{"Content-Type":"text/xml","X-Two":"a, b"},"body":"<é&\"/>","isBase64Encoded":false}`},
		{"load balancer", balancer, "POST", ok,
			`{"statusCode":200,"statusDescription":"200 OK","headers":{"Content-Type":"text/xml","X-Two":"a, b"},"body":"<é&\"/>","isBase64Encoded":false}`},
		{"load balancer, multi", balancerMulti, "POST", ok,
			`{"statusCode":200,"statusDescription":"200 OK","multiValueHeaders":{"Content-Type":["text/xml"],"X-Two":["a","b"]},"body":"<é&\"/>","isBase64Encoded":false}`},
		{"head", format2, "HEAD", ok,
			`{"statusCode":200,"headers":{"Content-Type":"text/xml","X-Two":"a, b"},"body":"","isBase64Encoded":false}`},
		{"no content", format1, "POST", none, `{"statusCode":204,"body":"","isBase64Encoded":false}`},
		{"no content, load balancer", balancer, "POST", none, `{"statusCode":204,"statusDescription":"204 No Content","headers":{"X-Content-Type-Options":"nosniff"},"body":"","isBase64Encoded":false}`},
		{"silent, load balancer, multi", balancerMulti, "POST", func(http.ResponseWriter) {},
			`{"statusCode":200,"statusDescription":"200 OK","multiValueHeaders":{"X-Content-Type-Options":["nosniff"]},"body":"","isBase64Encoded":false}`},
		{"no text", format2, "POST", func(w http.ResponseWriter) { _, _ = w.Write([]byte{0xff, 0}) },
			`{"statusCode":200,"body":"/wA=","isBase64Encoded":true}`},
		{"silent", format2, "POST", func(http.ResponseWriter) {}, `{"statusCode":200,"body":"","isBase64Encoded":false}`},
		{"early hints", format2, "POST", func(w http.ResponseWriter) { w.WriteHeader(103); w.WriteHeader(401); w.WriteHeader(200) },
			`{"statusCode":401,"body":"","isBase64Encoded":false}`},
		{"status of a provider", balancer, "POST", func(w http.ResponseWriter) { w.WriteHeader(498) },
			`{"statusCode":498,"statusDescription":"498","headers":{"X-Content-Type-Options":"nosniff"},"body":"","isBase64Encoded":false}`},
		{"cookies", format2, "POST", func(w http.ResponseWriter) { w.Header()["Set-Cookie"] = []string{"a=1", "b=2"} },
			`{"statusCode":200,"cookies":["a=1","b=2"],"body":"","isBase64Encoded":false}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var a answer
			tc.answer(&a)
			got, err := a.encode(event{kind: tc.kind, method: tc.method})
			if err != nil || string(got) != tc.want {
				t.Errorf("encode = %s, %v\nwant %s", got, err, tc.want)
			}
		})
	}
}
