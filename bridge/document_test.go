package bridge_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/queenbridge/queenbridge/bridge"
)

// document reads JSON into a Node: what the tests write documents in.
func document(t testing.TB, text string) bridge.Node {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	n := readNode(t, dec)
	if dec.More() {
		t.Fatalf("more than one document in %s", text)
	}
	return n
}

func readNode(t testing.TB, dec *json.Decoder) bridge.Node {
	t.Helper()
	token, err := dec.Token()
	if err != nil {
		t.Fatal(err)
	}
	switch v := token.(type) {
	case string:
		return bridge.Node{Kind: bridge.NodeString, Text: v}
	case json.Number:
		return bridge.Node{Kind: bridge.NodeNumber, Text: v.String()}
	case bool:
		return bridge.Node{Kind: bridge.NodeBool, Text: map[bool]string{true: "true", false: "false"}[v]}
	case json.Delim:
		return readInside(t, dec, v)
	}
	return bridge.Node{}
}

func readInside(t testing.TB, dec *json.Decoder, open json.Delim) bridge.Node {
	t.Helper()
	n := bridge.Node{Kind: bridge.NodeList}
	if open == '{' {
		n.Kind = bridge.NodeMap
	}
	for dec.More() {
		if open == '[' {
			n.Items = append(n.Items, readNode(t, dec))
			continue
		}
		key := readNode(t, dec).Text
		n.Members = append(n.Members, bridge.Member{Key: key, Value: readNode(t, dec)})
	}
	_, _ = dec.Token() // the closing bracket
	return n
}

// texts are the problems as a user reads them.
func texts(problems []bridge.Problem) []string {
	var all []string
	for _, p := range problems {
		text := p.String()
		if p.Warning {
			text = "warning: " + text
		}
		all = append(all, text)
	}
	return all
}

const wholeDocument = `{
	"sources": [{"name": "github", "scheme": "github", "secrets": ["s"]}],
	"targets": [{"name": "ci", "http": {"url": "https://ci.example.com/"}}],
	"routes": [{"name": "r", "queue": "github", "target": "ci"}],
	"queues": [{"name": "github"}]
}`
