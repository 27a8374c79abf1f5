package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs the program as a user would type it.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			admin := unusedAddr(t)
			e.Setenv("ADMIN_ADDR", admin)
			e.Setenv("INGRESS_ADDR", unusedAddr(t))
			e.Setenv("QUEENBRIDGE_ENDPOINT", "http://"+admin)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"await": await},
	})
}

// await waits until a URL answers 200.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await URL")
	}
	for deadline := time.Now().Add(patient); time.Now().Before(deadline); {
		resp, err := http.Get(args[0])
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		<-time.After(20 * time.Millisecond)
	}
	ts.Fatalf("%s did not answer 200 within %s", args[0], patient)
}
