package filter_test

import (
	"context"
	"fmt"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/filter"
)

func ExampleFilter_Match() {
	f, err := filter.Compile(`event.type == "push" && event.body.ref == "refs/heads/main"`)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, body := range []string{`{"ref":"refs/heads/main"}`, `{"ref":"refs/heads/try"}`, `{}`} {
		fmt.Println(f.Match(context.Background(), &bridge.Event{Type: "push", Body: []byte(body)}))
	}
	fmt.Println(f.Match(context.Background(), &bridge.Event{Type: "ping", Body: []byte(`{}`)}))
	// Output:
	// true <nil>
	// false <nil>
	// false at column 36: event.body.ref: this event has no member "ref" (ask with has(), or read it with .? and orValue())
	// false <nil>
}

func ExampleCompile() {
	_, err := filter.Compile(`event.tpye == "push"`)
	fmt.Println(err)
	// Output:
	// at column 7, `tpye == "push"`: an event has no field "tpye" (did you mean event.type?)
}

func ExampleCompilePattern() {
	p, err := filter.CompilePattern(map[string]any{
		"type": []any{"push"},
		"body": map[string]any{"ref": []any{"refs/heads/main", map[string]any{"prefix": "refs/tags/"}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, body := range []string{`{"ref":"refs/heads/main"}`, `{"ref":"refs/heads/try"}`, `{}`, `no JSON`} {
		fmt.Println(p.Match(context.Background(), &bridge.Event{Type: "push", Body: []byte(body)}))
	}
	_, err = filter.CompilePattern(map[string]any{"tpye": []any{"push"}, "body": map[string]any{"ref": "main"}})
	fmt.Println(err)
	// Output:
	// true <nil>
	// false <nil>
	// false <nil>
	// false <nil>
	// body.ref: must be a list of alternatives, such as ["main"]; tpye: an event has no field "tpye" (did you mean "type"?)
}

func ExampleTransform_Apply() {
	t, err := filter.CompileTransform(bridge.Transform{
		Body:    `{"text": "New push to " + event.body.repository.full_name, "id": event.body.repository.id}`,
		Headers: map[string]string{"x-ref": `event.body.ref`, "x-hub-signature-256": `null`},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	made, err := t.Apply(context.Background(), &bridge.Event{
		Type: "push", Body: []byte(`{"ref":"refs/heads/main","repository":{"full_name":"octo/hello","id":9007199254740993}}`),
		Headers: []bridge.Header{{Name: "x-hub-signature-256", Value: "sha256=…"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(made.Body))
	fmt.Println(made.Headers)
	// Output:
	// {"id":9007199254740993,"text":"New push to octo/hello"}
	// [{content-type application/json} {x-ref refs/heads/main}]
}
