package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/queenbridge/queenbridge/signing"
)

// sendable is, for a scheme, what its source needs beside name and scheme;
// schemes that are not here need one secret of any text.
var sendable = map[string]string{
	"standard-webhooks": "secrets: [" + whsecSecret + "]",
	"svix":              "secrets: [" + whsecSecret + "]",
	"gitlab":            "secrets: [" + whsecSecret + "]",
	"twilio":            `secrets: [token], public_url: "https://hooks.example.com/in/twilio"`,
	"hmac":              "secrets: [s], scheme_options: {header: X-Sig, prefix: \"v1=\", message: \"{timestamp}.{body}\", timestamp: {header: X-Time, unit: ms}}",
	"token":             "secrets: [s], scheme_options: {header: X-Api-Key}",
	"basic":             `secrets: ["user:pass:word"]`,
	"none":              "",
}

// TestSendSignsEveryScheme sends one webhook for each scheme of this list to a
// bridge that checks it.
func TestSendSignsEveryScheme(t *testing.T) {
	t.Parallel()
	schemes := []string{"github", "standard-webhooks", "svix", "stripe", "slack", "shopify", "gitlab", "gitlab-token", "twilio", "hmac", "token", "basic", "none"}
	var config strings.Builder
	config.WriteString("sources:\n")
	for _, scheme := range schemes {
		if _, ok := signing.Lookup(scheme); !ok {
			t.Fatalf("scheme %s is not built", scheme)
		}
		needs, ok := sendable[scheme]
		if !ok {
			needs = "secrets: [a-secret-of-thirty-two-characters]"
		}
		fmt.Fprintf(&config, "  - {name: %s, scheme: %s, %s}\n", scheme, scheme, needs)
	}
	w := newWorld(t)
	p := w.start(config.String())
	for _, scheme := range schemes {
		var out, errs bytes.Buffer
		args := []string{"send", "--config", filepath.Join(w.dir, "bridge.yaml"), "--source", scheme, "--url", p.ingress + "/in/" + scheme}
		code := run(t.Context(), args, streams{in: strings.NewReader(""), out: &out, err: &errs}, os.LookupEnv)
		if code != 0 || !strings.Contains(out.String(), "200 OK") {
			t.Errorf("send as %s: exit code %d\n%s%s", scheme, code, out.String(), errs.String())
		}
	}
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"send", "--scheme", "github", "--secret", "wrong", "--url", p.ingress + "/in/github"}, streams{out: &out, err: &errs}, os.LookupEnv)
	if code != 1 || !strings.Contains(errs.String(), "hint: the signature was refused") {
		t.Errorf("send with a wrong secret: exit code %d\n%s%s", code, out.String(), errs.String())
	}
}
