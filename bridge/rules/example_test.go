package rules_test

import (
	"context"
	"fmt"
	"log"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/bridge/queen/devbroker"
	"github.com/queenbridge/queenbridge/bridge/rules"
)

// Two processes share the rules that Queen keeps: what is stored through one is
// used by the other.
func Example() {
	broker, err := devbroker.Open(devbroker.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = broker.Close() }()
	client, err := queen.New(queen.Config{URLs: []string{"http://queen"}, Transport: broker.Transport()})
	if err != nil {
		log.Fatal(err)
	}
	file := rules.File{Config: bridge.Defaults()} // with nothing in it
	one, other := rules.New(rules.Config{File: file, Queen: client}), rules.New(rules.Config{File: file, Queen: client})

	ctx := context.Background()
	target, err := bridge.ParseJSON([]byte(`{"http": {"url": "https://ci.example.com/hook"}}`))
	if err != nil {
		log.Fatal(err)
	}
	name := bridge.Resource{Kind: bridge.KindTarget, Name: "ci"}
	one.Sync(ctx)
	written, err := one.Write(ctx, rules.Write{Resource: name, Document: target, By: "ann"})
	fmt.Println(written.Fields, err)

	other.Sync(ctx) // Run does so every few seconds
	for _, t := range other.Catalog().Config.Targets {
		fmt.Println(t.Name, t.HTTP.URL)
	}

	route, err := bridge.ParseJSON([]byte(`{"queue": "github", "target": "cd"}`))
	if err != nil {
		log.Fatal(err)
	}
	_, err = other.Write(ctx, rules.Write{Resource: bridge.Resource{Kind: bridge.KindRoute, Name: "pushes"}, Document: route})
	fmt.Println(err)
	// Output:
	// [name http.url] <nil>
	// ci https://ci.example.com/hook
	// target: no target is called "cd" (did you mean "ci"?)
}
