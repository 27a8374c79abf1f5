package main

import (
	"encoding/base64"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// kind is a shape of event and answer.
type kind int

const (
	// format1 is API Gateway's payload format 1.0: REST APIs, and HTTP APIs
	// that ask for it.
	format1 kind = iota + 1
	// format2 is payload format 2.0: HTTP APIs and function URLs.
	format2
	// balancer is an Application Load Balancer, balancerMulti one whose target
	// group has lambda.multi_value_headers.enabled; its answer must be of the
	// same form.
	balancer
	balancerMulti
)

// event is the request that an event document holds.
type event struct {
	kind   kind
	method string
	// path and query are raw, as far as the document holds them so.
	path, query string
	header      http.Header
	body        []byte
	address     string // of the client, as the gateway saw it
	certificate string // of the client, PEM; "" without mutual TLS
}

// document is the union of the event documents, as AWS describes them:
// "Input format of a Lambda function for proxy integration" (API Gateway),
// "Request payload format" (function URLs), "Receive events from the load
// balancer" (Elastic Load Balancing). A name counts only as it is written, and
// one that stands there twice is an error.
type document struct {
	Version         string       `json:"version"`
	Type            string       `json:"type"` // only authorizers have one
	HTTPMethod      string       `json:"httpMethod"`
	Path            string       `json:"path"`
	RawPath         string       `json:"rawPath"`
	RawQueryString  string       `json:"rawQueryString"`
	Headers         pairs        `json:"headers"`
	MultiHeaders    *pairs       `json:"multiValueHeaders"`
	Query           pairs        `json:"queryStringParameters"`
	MultiQuery      *pairs       `json:"multiValueQueryStringParameters"`
	Cookies         []string     `json:"cookies"`
	Context         eventContext `json:"requestContext"`
	Body            string       `json:"body"`
	IsBase64Encoded bool         `json:"isBase64Encoded"`
}

type eventContext struct {
	Stage    string         `json:"stage"`
	ELB      jsontext.Value `json:"elb"`
	Identity *struct {
		SourceIP   string      `json:"sourceIp"`
		ClientCert certificate `json:"clientCert"`
	} `json:"identity"`
	HTTP *struct {
		Method   string `json:"method"`
		SourceIP string `json:"sourceIp"`
	} `json:"http"`
	Authentication *struct {
		ClientCert certificate `json:"clientCert"`
	} `json:"authentication"`
}

type certificate struct {
	PEM string `json:"clientCertPem"`
}

// decodeEvent reads an event document. Its error names what the document is
// instead, in a way that may be logged: names, no values.
func decodeEvent(payload []byte) (event, error) {
	var d document
	if err := json.Unmarshal(payload, &d); err != nil {
		return event{}, fmt.Errorf("read event: %w", describe(err, payload))
	}
	e := event{kind: d.kind()}
	switch e.kind {
	case format1:
		e.fromFormat1(&d)
	case format2:
		e.fromFormat2(&d)
	case balancer, balancerMulti:
		e.fromBalancer(&d)
	default:
		return event{}, unknownEvent(payload)
	}
	var err error
	if e.body, err = d.body(); err != nil {
		return event{}, fmt.Errorf("read event: %w", err)
	}
	return e, nil
}

// kind tells the documents apart, 0 for one that is none of ours.
func (d *document) kind() kind {
	c := &d.Context
	switch {
	case d.Type != "": // an authorizer is asked with nearly the same fields
		return 0
	case len(c.ELB) > 0 && d.HTTPMethod != "" && d.MultiHeaders != nil:
		return balancerMulti
	case len(c.ELB) > 0 && d.HTTPMethod != "":
		return balancer
	case d.Version == "2.0" && c.HTTP != nil && d.RawPath != "":
		return format2
	case d.Version != "2.0" && c.Identity != nil && d.HTTPMethod != "" && d.Path != "":
		return format1
	}
	return 0
}

func (d *document) body() ([]byte, error) {
	if !d.IsBase64Encoded {
		return []byte(d.Body), nil
	}
	body, err := base64.StdEncoding.Strict().DecodeString(d.Body)
	if err != nil || strings.ContainsAny(d.Body, "\r\n") { // which the decoder skips
		return nil, errors.New("body: isBase64Encoded is true, but it is no base64")
	}
	return body, nil
}

// fromFormat1 builds the query anew: the document holds names and values
// decoded, in the order of the document.
func (e *event) fromFormat1(d *document) {
	e.method, e.path = d.HTTPMethod, sourcePath(d.Path, d.Context.Stage)
	e.query = encodeQuery(first(d.MultiQuery, d.Query))
	e.header = headers(first(d.MultiHeaders, d.Headers))
	e.address = d.Context.Identity.SourceIP
	e.certificate = d.Context.Identity.ClientCert.PEM
}

// fromFormat2 has equal headers joined by commas, and cookies apart.
func (e *event) fromFormat2(d *document) {
	e.method, e.path = d.Context.HTTP.Method, sourcePath(d.RawPath, d.Context.Stage)
	e.query = escape(d.RawQueryString, queryByte) // as it is; what is escaped here cannot have been received so
	e.header = headers(d.Headers)
	if len(d.Cookies) > 0 {
		e.header.Set("Cookie", strings.Join(d.Cookies, "; "))
	}
	e.address = d.Context.HTTP.SourceIP
	if a := d.Context.Authentication; a != nil {
		e.certificate = a.ClientCert.PEM
	}
}

// fromBalancer joins the query as it is: a load balancer takes it apart and
// decodes nothing. It writes the client's address at the end of
// X-Forwarded-For; what stands before that came from the client.
func (e *event) fromBalancer(d *document) {
	e.method, e.path = d.HTTPMethod, sourcePath(d.Path, "")
	e.query = joinQuery(first(d.MultiQuery, d.Query))
	e.header = headers(first(d.MultiHeaders, d.Headers))
	forwarded := strings.Split(strings.Join(e.header["X-Forwarded-For"], ","), ",")
	e.address = strings.TrimSpace(forwarded[len(forwarded)-1])
}

// first is the form with every value where there is one.
func first(multi *pairs, single pairs) pairs {
	if multi != nil && len(*multi) > 0 {
		return *multi
	}
	return single
}

func headers(list pairs) http.Header {
	h := make(http.Header, len(list))
	for _, p := range list {
		h.Add(p.name, p.value)
	}
	return h
}

// pairs is an object of strings, or of arrays of strings, in the order of the
// document; null has none.
type pairs []pair

type pair struct{ name, value string }

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (p *pairs) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*p = nil
	if d.PeekKind() == 'n' {
		return d.SkipValue()
	}
	if d.PeekKind() != '{' {
		return errors.New("must be an object")
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		var name string
		if err := json.UnmarshalDecode(d, &name); err != nil {
			return err
		}
		values, err := readValues(d)
		if err != nil {
			return err
		}
		for _, v := range values {
			*p = append(*p, pair{name, v})
		}
	}
	_, err := d.ReadToken()
	return err
}

// readValues reads a string, an array of strings, or null.
func readValues(d *jsontext.Decoder) ([]string, error) {
	if d.PeekKind() == '[' {
		var list []string
		return list, json.UnmarshalDecode(d, &list)
	}
	var one *string
	if err := json.UnmarshalDecode(d, &one); err != nil || one == nil {
		return nil, err
	}
	return []string{*one}, nil
}

// describe keeps the values of a document out of an error.
func describe(err error, payload []byte) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return fmt.Errorf("at byte %d of %d: %w", syntax.ByteOffset, len(payload), syntax.Err)
	}
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		return fmt.Errorf("%s has another form than in the events of API Gateway, function URLs and load balancers", semantic.JSONPointer)
	}
	return err
}

// maxNamed bounds the names in an error.
const maxNamed = 12

// unknownEvent says what the document has instead of a request.
func unknownEvent(payload []byte) error {
	var fields map[string]jsontext.Value
	_ = json.Unmarshal(payload, &fields) // it was read before; null has no fields
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, fmt.Sprintf("%.40q", name))
	}
	slices.Sort(names)
	return fmt.Errorf("read event: this is no request: it has the fields [%s]; this function takes the events of API Gateway "+
		"(Lambda proxy integration of a REST or HTTP API), of a function URL, or of an Application Load Balancer",
		strings.Join(names[:min(len(names), maxNamed)], ", "))
}
