package format_test

import (
	"fmt"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/format"
)

// A batch of two events becomes one JSON array; the function then says which
// one it could not handle.
func Example() {
	e := format.New(bridge.Route{Batch: bridge.RouteBatch{Size: 10}}, bridge.Target{HTTP: &bridge.HTTPTarget{}})
	m := e.Encode(items(`{"n": 1}`, `plain text`), now)
	fmt.Printf("%s %s\n", m.ContentType, m.Body)

	failed, err := format.ParseReport([]byte(`{"batchItemFailures":[{"itemIdentifier":"1"}]}`), m.IDs, e.Indexed())
	fmt.Println(failed, err)
	// Output:
	// application/json [{"n": 1},"plain text"]
	// [false true] <nil>
}
