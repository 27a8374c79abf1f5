// Command queenbridge connects Queen MQ and HTTP functions, both ways: signed
// webhooks in, calls out. It composes the packages; what they do is theirs.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the build.
var version = "dev"

func main() {
	os.Exit(Main())
}

// Main runs the program and returns its exit code: 0 ok, 1 failed, 2 wrong
// usage or configuration. The first SIGINT or SIGTERM drains; a second one
// ends the process at once.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}, os.LookupEnv)
}
