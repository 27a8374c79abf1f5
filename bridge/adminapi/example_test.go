package adminapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
)

// A change that holds only if nobody else made one. The bridge is recorded here,
// so that this package needs none of its parts; the Example of package admin has
// a real one.
func Example() {
	bridgeOf := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			_, _ = io.WriteString(w, `{"name":"ci","http":{"url":"https://ci.example.com/hook"},"meta":{"managed_by":"api","state":"active","version":"8"}}`)
		case r.Header.Get("If-Match") != `"9"`:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusPreconditionFailed)
			_, _ = io.WriteString(w, `{"status":412,"code":"precondition","detail":"targets/ci has version 9"}`)
		}
	}))
	defer bridgeOf.Close()

	client, err := adminapi.NewClient(adminapi.Config{Endpoint: bridgeOf.URL, Token: "ann's token"})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	target, err := client.Read(ctx, bridge.KindTarget, "ci")
	fmt.Println(target.Name(), string(target.Document), err)

	_, err = client.Patch(ctx, bridge.KindTarget, "ci", json.RawMessage(`{"concurrency": 8}`), adminapi.WriteOptions{IfMatch: target.Meta.Version})
	if refused, ok := errors.AsType[*adminapi.Error](err); ok {
		fmt.Println(refused.Code, refused.Detail)
	}
	// Output:
	// ci {"name":"ci","http":{"url":"https://ci.example.com/hook"}} <nil>
	// precondition targets/ci has version 9
}
