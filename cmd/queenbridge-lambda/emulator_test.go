package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/queenbridge/queenbridge/dispatch/lambdatarget/lambdatest"
)

// buildTags are those of the Makefile: without the RPC of the old runtime,
// without the spool.
const buildTags = "lambda.norpc,nospool"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// buildFunction builds the program as it is deployed, without the spool, in a
// directory of its own beside bridge.yaml.
func buildFunction(t *testing.T, config string) (bootstrap string) {
	t.Helper()
	bootstrap = lambdatest.Build(t, ".", buildTags)
	if err := os.WriteFile(filepath.Join(filepath.Dir(bootstrap), "bridge.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return bootstrap
}

// emulator is one running function.
type emulator struct {
	*lambdatest.Emulator
	t *testing.T
}

// startEmulator runs a function with a timeout in seconds until the test ends.
func startEmulator(t *testing.T, bootstrap string, timeout int, env ...string) *emulator {
	t.Helper()
	return &emulator{lambdatest.Start(t, lambdatest.Options{Bootstrap: bootstrap, Timeout: time.Duration(timeout) * time.Second, Env: env}), t}
}

// invoke hands an event to the function and returns its answer.
func (e *emulator) invoke(event []byte) []byte {
	e.t.Helper()
	answer, err := e.Invoke(event)
	if err != nil {
		e.t.Fatalf("invoke: %v", err)
	}
	return answer
}
