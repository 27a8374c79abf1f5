package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"text/template"
	"time"

	"github.com/queenbridge/queenbridge/bridge/configfile"
	"github.com/queenbridge/queenbridge/signing"
	"github.com/spf13/cobra"
)

//go:embed dev.yaml
var devConfig string

// devSecret signs the sample webhooks. It guards nothing: the listener is on
// loopback and the function only prints.
const devSecret = "It's a Secret to Everybody"

// devOptions are the flags of `queenbridge dev`.
type devOptions struct {
	logFlags
	data                              string
	memory                            bool
	fail                              int
	ingressAddr, adminAddr, queenAddr string
}

func (p *program) devCommand() *cobra.Command {
	var o devOptions
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run the main job on this machine: broker, a signed source, a route and a function that prints",
		Long: "dev runs everything in one process: the embedded broker, the source \"github\", a route, and a function\n" +
			"that prints what arrives. It prints a signed curl to paste.",
		Example: "  queenbridge dev\n  queenbridge dev --memory --fail 2",
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.dev(cmd.Context(), o) },
	}
	f := c.Flags()
	f.StringVar(&o.data, "data", "./queenbridge-data", "directory of the embedded broker")
	f.BoolVar(&o.memory, "memory", false, "keep everything in memory instead")
	f.IntVar(&o.fail, "fail", 0, "make the function fail this often for each event, to see the retries")
	f.StringVar(&o.ingressAddr, "ingress-addr", "127.0.0.1:8080", "address of the webhook listener")
	f.StringVar(&o.adminAddr, "admin-addr", "127.0.0.1:8081", "address of /livez, /readyz and /metrics")
	f.StringVar(&o.queenAddr, "queen-addr", "127.0.0.1:6632", "address of the embedded broker's API")
	o.bindLog(f)
	c.MarkFlagsMutuallyExclusive("data", "memory")
	return c
}

func (p *program) dev(ctx context.Context, o devOptions) error {
	logging, err := p.logging(o.logFlags)
	if err != nil {
		return err
	}
	fn, err := listen(ctx, "the built-in function", "127.0.0.1:0")
	if err != nil {
		return err
	}
	config, err := p.devBridge(o, "http://"+fn.Addr().String()+"/")
	if err != nil {
		return err
	}
	cfg := config.Config
	cfg.Log = logging
	b := &bridgeProcess{cfg: cfg, config: config, log: newLogger(p.err, cfg.Log), reg: newRegistry(), terminal: p.err, aws: p.aws}
	b.started = func(a addrs) { p.banner(a, o) }
	fnCtx, stopFn := context.WithCancel(context.WithoutCancel(ctx)) // outlives the dispatcher's last calls
	defer stopFn()
	fnDone := make(chan error, 1)
	go func() { fnDone <- serveHTTP(fnCtx, fn, newFunction(p.out, o.fail), time.Second) }()
	err = b.run(ctx, nil)
	stopFn()
	return errors.Join(err, <-fnDone)
}

// devBridge is the sample configuration, filled in.
func (p *program) devBridge(o devOptions, function string) (configfile.Result, error) {
	store := o.data
	if o.memory {
		store = "memory"
	}
	var doc bytes.Buffer
	fields := map[string]string{
		"Store": store, "QueenAddr": o.queenAddr, "IngressAddr": o.ingressAddr, "AdminAddr": o.adminAddr,
		"Secret": devSecret, "FunctionURL": function,
	}
	for name, value := range fields {
		fields[name] = quoted(value)
	}
	if err := template.Must(template.New("dev").Parse(devConfig)).Execute(&doc, fields); err != nil {
		return configfile.Result{}, err
	}
	return configfile.Load(configfile.Options{Path: "dev.yaml", Data: doc.Bytes()})
}

// quoted is a string as YAML and JSON write it.
func quoted(s string) string {
	b, _ := json.Marshal(s) // a string always marshals
	return string(b)
}

// banner says what runs where, and what to paste.
func (p *program) banner(a addrs, o devOptions) {
	store := "in " + o.data
	if o.memory {
		store = "in memory"
	}
	_, _ = fmt.Fprintf(p.out, `
  Queen Bridge %s

  webhooks   http://%s/in/github   (scheme github, secret %q)
  function   built in: prints what arrives%s
  Queen      http://%s   (embedded, %s)
  admin      http://%s/readyz   /livez   /metrics

  Try it, in another terminal:

%s
  Ctrl-C stops.

`, versionText(), a.ingress, devSecret, failing(o.fail), a.queen, store, a.admin, sampleCurl(a.ingress))
}

func failing(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; fails %d times for each event", n)
}

// sampleCurl is a webhook signed as GitHub does. The delivery id, which the
// signature does not cover, is a new one each time it is pasted.
func sampleCurl(ingress net.Addr) string {
	const body = `{"zen":"Keep it logically awesome.","repository":{"full_name":"octo/hello"}}`
	r := &signing.Request{Method: http.MethodPost, Path: "/in/github", Header: make(http.Header), Body: []byte(body), Now: time.Now()}
	if err := signing.Forge(signing.Options{Scheme: "github", Secrets: []string{devSecret}}, r); err != nil {
		return "  (" + err.Error() + ")\n"
	}
	lines := []string{
		fmt.Sprintf("curl -i http://%s/in/github", ingress),
		`-H "X-GitHub-Delivery: $(date +%s%N)"`,
		`-H 'X-GitHub-Event: push'`,
		`-H 'Content-Type: application/json'`,
		fmt.Sprintf("-H 'X-Hub-Signature-256: %s'", r.Header.Get("X-Hub-Signature-256")),
		fmt.Sprintf("-d '%s'", body),
	}
	return "    " + strings.Join(lines, " \\\n      ") + "\n"
}
