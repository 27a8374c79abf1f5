package filter

import (
	"net/url"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"

	"github.com/queenbridge/queenbridge/bridge"
)

// input shows an event to an evaluation. Each part is made when it is first
// read, and only what the expression needs of it.
type input struct {
	reads   *reads
	event   *bridge.Event
	body    any
	query   map[string]string
	headers map[string]string
	decoded bool // body is made
	decoder decoder
}

var _ interpreter.Activation = (*input)(nil)

// forget lets go of the event.
func (in *input) forget() {
	in.event, in.body, in.query, in.headers, in.decoded = nil, nil, nil, nil, false
}

// Parent is part of CEL's interface: there is none.
func (in *input) Parent() interpreter.Activation { return nil }

// ResolveName is the value of a field.
func (in *input) ResolveName(name string) (any, bool) {
	switch name {
	case "event.id":
		return types.String(in.event.ID), true
	case "event.type":
		return types.String(in.event.Type), true
	case "event.source":
		return types.String(in.event.Source), true
	case "event.time":
		return types.Timestamp{Time: in.event.Received}, true
	case "event.method":
		return types.String(in.event.Method), true
	case "event.path":
		return types.String(in.event.Path), true
	case "event.query":
		return in.queryValues(), true
	case "event.headers":
		return in.headerValues(), true
	case "event.body":
		return in.bodyValue(), true
	}
	return nil, false
}

func (in *input) bodyValue() any {
	if !in.decoded {
		value, err := in.decoder.decode(in.event.Body, &in.reads.body)
		if err != nil {
			value = types.WrapErr(err)
		}
		in.body, in.decoded = value, true
	}
	return in.body
}

func (in *input) headerValues() map[string]string {
	if in.headers == nil {
		in.headers = headersOf(in.event, &in.reads.headers)
	}
	return in.headers
}

func (in *input) queryValues() map[string]string {
	if in.query == nil {
		in.query = queryOf(in.event, &in.reads.query)
	}
	return in.query
}

// headersOf are those headers of an event that are needed.
func headersOf(e *bridge.Event, n *need) map[string]string {
	headers := make(map[string]string, len(n.members))
	for _, h := range e.Headers {
		// Names are lower case where the ingress wrote the event.
		add(headers, n, strings.ToLower(h.Name), h.Value)
	}
	return headers
}

// queryOf are those parts of an event's query that are needed.
func queryOf(e *bridge.Event, n *need) map[string]string {
	query := make(map[string]string, len(n.members))
	for pair := range strings.SplitSeq(e.Query, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		add(query, n, unescape(name), unescape(value))
	}
	return query
}

// unescape decodes a part of a query; what is wrongly escaped stays as it is.
func unescape(s string) string {
	if decoded, err := url.QueryUnescape(s); err == nil {
		return decoded
	}
	return s
}

// add puts a value into a map of those that are needed; one that is there
// already gets a comma and the next.
func add(values map[string]string, n *need, name, value string) {
	if !n.whole && n.members[name] == nil {
		return
	}
	if before, repeated := values[name]; repeated {
		value = before + "," + value
	}
	values[name] = value
}
