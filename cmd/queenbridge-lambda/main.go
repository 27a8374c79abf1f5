// Command queenbridge-lambda is the ingress of Queen Bridge as an AWS Lambda
// function behind an API Gateway (REST or HTTP API), a function URL or an
// Application Load Balancer: the same handler as "queenbridge serve", one event
// document in, one answer out. It leaves dispatch, the spool, the admin listener
// and the embedded broker to "queenbridge serve": a function is frozen once it
// has answered, so nothing may be left to do then.
//
// Promises:
//   - A request is handled as it was received: the bytes of its body, its raw
//     path and query, and every header value, as far as the event holds them.
//   - 2xx is answered only when Queen holds the events of the request.
//   - The answer comes 500 ms before the function would be ended, or earlier.
//   - No push runs on after the answer.
package main

import (
	"context"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/queenbridge/queenbridge/bridge"
)

// version is set by the build.
var version = "dev"

func main() {
	ctx := context.Background()
	f, err := start(ctx, os.Stderr, os.LookupEnv)
	if err != nil {
		bridge.LogConfig{}.Logger(os.Stderr, false).ErrorContext(ctx, "cannot start", "error", err)
		os.Exit(2)
	}
	lambda.StartWithOptions(f, lambda.WithContext(ctx)) // does not return
}
