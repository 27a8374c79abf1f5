package examples_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	shellBlocks = regexp.MustCompile("(?s)```sh\n(.*?)```")
	functionURL = regexp.MustCompile(`http://127\.0\.0\.1:300\d`)
)

// TestReadmes does what each README tells the reader to: every command of its
// sh blocks is run, `serve` as the bridge and the rest beside it.
func TestReadmes(t *testing.T) {
	t.Parallel()
	readmes, err := filepath.Glob("*/README.md")
	if err != nil || len(readmes) < 8 {
		t.Fatal(readmes, err)
	}
	for _, path := range readmes {
		name := filepath.Dir(path)
		if name == "terraform" {
			continue // needs terraform: tested with the provider
		}
		t.Run(name, func(t *testing.T) { t.Parallel(); follow(t, name) })
	}
}

func follow(t *testing.T, name string) {
	text, err := os.ReadFile(filepath.Join(name, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("\n")); n > 45 {
		t.Errorf("the README has %d lines, more than a screen", n)
	}
	var script strings.Builder
	for _, block := range shellBlocks.FindAllSubmatch(text, -1) {
		script.Write(block[1])
	}
	url, calls := function(t, func(call) int { return http.StatusOK })
	preamble, args, rest := aroundServe(t, functionURL.ReplaceAllString(script.String(), url))
	e := serve(t, name, append(exports(t, preamble), awsOfNobody...)...)
	if want := "serve --config bridge.yaml"; !strings.HasPrefix(args, want) {
		t.Errorf("the README serves by %q, want %s", args, want)
	}
	broker := strings.TrimPrefix(e.addrs["embedded broker listening"], "http://")
	shell(t, name, preamble+strings.ReplaceAll(rest, "127.0.0.1:6632", broker), append(e.env,
		"QUEENBRIDGE_INGRESS_ADDR="+strings.TrimPrefix(e.addrs["ingress listening"], "http://"), "QUEENBRIDGE_ENDPOINT="+e.addrs["admin listening"]))
	if name != "stripe-to-lambda" { // calls Lambda
		next(t, calls)
	}
}

var awsOfNobody = []string{
	"AWS_ENDPOINT_URL_LAMBDA=http://127.0.0.1:9", "AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=key-of-nobody",
	"AWS_CONFIG_FILE=/nonexistent", "AWS_SHARED_CREDENTIALS_FILE=/nonexistent",
}

// aroundServe splits a script at the line that starts the bridge.
func aroundServe(t *testing.T, script string) (preamble, args, rest string) {
	t.Helper()
	preamble, after, found := strings.Cut(script, "queenbridge serve")
	if !found {
		t.Fatalf("no `queenbridge serve` in\n%s", script)
	}
	line, rest, _ := strings.Cut(after, "\n")
	return preamble, "serve" + line, rest
}

// exports are the variables that a script sets.
func exports(t *testing.T, script string) []string {
	t.Helper()
	cmd := exec.Command("sh", "-euc", script+"\nenv -0")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, script)
	}
	var set []string
	for variable := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		if name, _, _ := strings.Cut(variable, "="); !slices.Contains([]string{"PATH", "PWD", "SHLVL", "_", "OLDPWD"}, name) {
			set = append(set, variable)
		}
	}
	return set
}

// shell runs a script in the folder of an example, with the program as
// `queenbridge`. Its first failure fails it.
func shell(t *testing.T, dir, script string, env []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-euxc", script)
	cmd.Dir = dir
	cmd.Env = append(env, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	// The exports of the script must not change the secrets the bridge has.
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		if strings.HasSuffix(name, "_SECRET") {
			cmd.Args[2] = strings.ReplaceAll(cmd.Args[2], "export "+name+"=", "export "+name+"='"+value+"' # ")
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
