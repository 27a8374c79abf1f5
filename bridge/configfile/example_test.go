package configfile_test

import (
	"fmt"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/configfile"
)

func ExampleLoad() {
	_, err := configfile.Load(configfile.Options{
		Path:  "bridge.yaml",
		Data:  []byte("targets:\n  - name: ci\n    http: {url: \"https://ci.example.com/\", timeot: 5s}\n    concurrency: 0\n"),
		Flags: func(c *bridge.Config) { c.Ingress.Addr = "127.0.0.1:8080" },
	})
	fmt.Println(err)
	// Output:
	// bridge.yaml:3: targets[0].http.timeot: is unknown (did you mean "timeout"?)
	// bridge.yaml:4: targets[0].concurrency: must be 1 or more, got 0
}
