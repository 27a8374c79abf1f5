package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/admin"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/bridge/rules"
)

// newBridge serves the admin API of a bridge on an embedded broker.
func newBridge() (url string, stop func()) {
	broker, err := devbroker.Open(devbroker.Config{})
	if err != nil {
		log.Fatal(err)
	}
	client, err := queen.New(queen.Config{URLs: []string{"http://queen"}, Transport: broker.Transport()})
	if err != nil {
		log.Fatal(err)
	}
	api, err := admin.New(admin.Config{
		Rules:    rules.New(rules.Config{File: rules.File{Config: bridge.Defaults()}, Queen: client}),
		Settings: bridge.AdminConfig{Tokens: []bridge.AdminToken{{Name: "ann", Role: bridge.RoleAdmin, Token: "ann's token"}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(api)
	return server.URL, func() {
		server.Close()
		client.Close()
		_ = broker.Close()
	}
}

// A target is made, changed only if nobody else did meanwhile, and refused with
// every problem where it is wrong.
func Example() {
	url, stop := newBridge()
	defer stop()
	client, err := adminapi.NewClient(adminapi.Config{Endpoint: url, Token: "ann's token"})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	made, err := client.Put(ctx, bridge.KindTarget, "ci", json.RawMessage(`{"http": {"url": "https://ci.example.com/hook"}}`), adminapi.WriteOptions{})
	fmt.Println(made.Name(), made.Meta.ManagedBy, err)

	seen := adminapi.WriteOptions{IfMatch: made.Meta.Version}
	_, err = client.Patch(ctx, bridge.KindTarget, "ci", json.RawMessage(`{"concurrency": 8}`), seen)
	fmt.Println("changed:", err)
	_, err = client.Patch(ctx, bridge.KindTarget, "ci", json.RawMessage(`{"concurrency": 9}`), seen)
	fmt.Println("changed by somebody else:", adminapi.IsCode(err, adminapi.CodePrecondition))

	_, err = client.Put(ctx, bridge.KindRoute, "pushes", json.RawMessage(`{"queue": "github", "target": "cd"}`), adminapi.WriteOptions{})
	if refused, ok := errors.AsType[*adminapi.Error](err); ok {
		for _, p := range refused.Problems {
			fmt.Println(p.Path, p.Text)
		}
	}
	// Output:
	// ci api <nil>
	// changed: <nil>
	// changed by somebody else: true
	// target no target is called "cd" (did you mean "ci"?)
}
