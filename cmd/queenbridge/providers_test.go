package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/queenbridge/queenbridge/bridge/configfile"
)

// What the list of providers shows as configuration is one.
func TestTheConfigurationsInProvidersLoad(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../signing/PROVIDERS.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) < 2 {
		t.Fatalf("%d configurations, want two", len(blocks))
	}
	for _, block := range blocks {
		data := regexp.MustCompile(`\$\{env:\w+\}`).ReplaceAll(block[1], []byte("secret"))
		_, err := configfile.Load(configfile.Options{Path: "PROVIDERS.md", Data: data})
		if err != nil {
			t.Errorf("%s\n%v", block[1], err)
		}
	}
}
