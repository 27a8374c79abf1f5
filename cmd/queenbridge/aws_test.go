package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// secretStores are fakes of Secrets Manager and Parameter Store that hold one
// secret.
func secretStores(t *testing.T, secret *atomic.Pointer[string]) (env []string) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		out := map[string]any{"Parameter": map[string]any{"Value": *secret.Load()}}
		if r.Header.Get("X-Amz-Target") == "secretsmanager.GetSecretValue" {
			out = map[string]any{"SecretString": fmt.Sprintf(`{"github":%q}`, *secret.Load())}
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(srv.Close)
	return []string{
		"AWS_ENDPOINT_URL=" + srv.URL, "AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=key-of-nobody",
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/nonexistent", "AWS_SHARED_CREDENTIALS_FILE=/nonexistent",
	}
}

// TestSecretsOfAWSAreReadAgainOnSIGHUP: no file changed, but the secret did.
func TestSecretsOfAWSAreReadAgainOnSIGHUP(t *testing.T) {
	t.Parallel()
	for kind, reference := range map[string]string{
		"secrets manager": "${aws-secretsmanager:arn:aws:secretsmanager:eu-west-1:123456789012:secret:hooks-AbCdEf#github}",
		"parameter store": "${aws-ssm:/hooks/github}",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			first, second := "secret-one", "secret-two"
			var held atomic.Pointer[string]
			held.Store(&first)
			w := newWorld(t)
			p := w.start(fmt.Sprintf("sources:\n  - {name: %s, scheme: github, secrets: [%q]}\n", w.name("main"), reference), secretStores(t, &held)...)
			if status := p.resent(first, w.path(), "1"); status != http.StatusOK {
				t.Errorf("with the secret: %d", status)
			}
			held.Store(&second)
			if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			p.logged("sources reloaded", w.name("main"))
			if status := p.resent(second, w.path(), "2"); status != http.StatusOK {
				t.Errorf("with the secret as it is now: %d", status)
			}
			if status := p.resent(first, w.path(), "3"); status != http.StatusUnauthorized {
				t.Errorf("with the secret as it was: %d", status)
			}
			if log := p.log(); strings.Contains(log, first) || strings.Contains(log, second) {
				t.Error("the log shows a secret")
			}
		})
	}
}
