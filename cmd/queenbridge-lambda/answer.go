package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json/v2"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"
)

// answer is the http.ResponseWriter of one event.
type answer struct {
	status int
	header http.Header
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header {
	if a.header == nil {
		a.header = make(http.Header)
	}
	return a.header
}

// WriteHeader implements http.ResponseWriter. There is no room for what comes
// before an answer, such as 100 Continue.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// answerDocument is the union of the answer documents.
type answerDocument struct {
	StatusCode        int                 `json:"statusCode"`
	StatusDescription string              `json:"statusDescription,omitempty"`
	Headers           map[string]string   `json:"headers,omitempty"`
	MultiHeaders      map[string][]string `json:"multiValueHeaders,omitempty"`
	Cookies           []string            `json:"cookies,omitempty"`
	Body              string              `json:"body"`
	IsBase64Encoded   bool                `json:"isBase64Encoded"`
}

// encode makes the document that the sender of an event understands.
func (a *answer) encode(e event) ([]byte, error) {
	a.WriteHeader(http.StatusOK) // a handler that said nothing
	d := answerDocument{StatusCode: a.status}
	h := a.Header().Clone()
	// The connection is the gateway's, and so is the framing of what it sends.
	h.Del("Connection")
	h.Del("Content-Length")
	switch e.kind {
	case format1:
		d.MultiHeaders = h
	case format2:
		d.Cookies = h["Set-Cookie"]
		h.Del("Set-Cookie")
		d.Headers = joined(h)
	case balancer:
		d.Headers, d.StatusDescription = joined(someHeader(h)), statusText(a.status)
	case balancerMulti:
		d.MultiHeaders, d.StatusDescription = someHeader(h), statusText(a.status)
	}
	if e.method != http.MethodHead && a.status != http.StatusNoContent && a.status != http.StatusNotModified {
		d.setBody(a.body.Bytes())
	}
	doc, err := json.Marshal(d, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("write answer: %w", err)
	}
	return doc, nil
}

// setBody uses base64 for what is no text: a REST API that lists no binary
// media types would pass it on as it is.
func (d *answerDocument) setBody(body []byte) {
	if d.IsBase64Encoded = !utf8.Valid(body); d.IsBase64Encoded {
		d.Body = base64.StdEncoding.EncodeToString(body)
		return
	}
	d.Body = string(body)
}

// someHeader adds a header where there is none: a load balancer's answer "must
// include the Base64 encoding status, status code, and headers" (AWS, Lambda
// functions as targets of Application Load Balancers).
func someHeader(h http.Header) http.Header {
	if len(h) == 0 {
		h.Set("X-Content-Type-Options", "nosniff")
	}
	return h
}

func joined(h http.Header) map[string]string {
	out := make(map[string]string, len(h))
	for name, values := range h {
		out[name] = strings.Join(values, ", ")
	}
	return out
}

// statusText is the status as load balancers want it: "200 OK".
func statusText(status int) string {
	return strings.TrimSpace(strconv.Itoa(status) + " " + http.StatusText(status))
}
