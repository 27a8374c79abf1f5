package httptarget_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch/httptarget"
)

// attempts sends one event twice, an hour apart, and returns both requests.
func attempts(t *testing.T, s bridge.TargetSigning) (requests []*http.Request, bodies []string) {
	t.Helper()
	url, got := capture(t)
	var now atomic.Int64
	o := httptarget.Options{Now: func() time.Time { return time.Unix(now.Load(), 0) }}
	sender := newSenderWith(t, url, o, func(t *bridge.Target) { t.Signing = s })
	for _, at := range []int64{time.Now().Add(-time.Hour).Unix(), time.Now().Unix()} {
		now.Store(at)
		if resp := send(t, sender, request()); resp.Status != 200 {
			t.Fatalf("Send = %d, %v", resp.Status, resp.Err)
		}
		r, body := got()
		requests, bodies = append(requests, r), append(bodies, body)
	}
	if requests[0].Header.Get("webhook-id") != "dlv_abc" || requests[1].Header.Get("webhook-id") != "dlv_abc" {
		t.Errorf("webhook-id %q, then %q; want dlv_abc", requests[0].Header.Get("webhook-id"), requests[1].Header.Get("webhook-id"))
	}
	if requests[0].Header.Get("webhook-timestamp") == requests[1].Header.Get("webhook-timestamp") {
		t.Error("both attempts have one timestamp: receivers refuse the second")
	}
	return requests, bodies
}

// Receivers refuse old timestamps; the official library judges. During a
// rotation every secret signs, so that each of them verifies.
func TestEachAttemptIsSignedAnew(t *testing.T) {
	t.Parallel()
	secrets := []bridge.Secret{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"}
	requests, bodies := attempts(t, bridge.TargetSigning{Scheme: "v1", Secrets: secrets})
	for _, secret := range secrets {
		library, err := webhooks.NewWebhook(secret.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		if err := library.VerifyIgnoringTimestamp([]byte(bodies[0]), requests[0].Header); err != nil {
			t.Errorf("the first attempt does not verify: %v", err)
		}
		if err := library.Verify([]byte(bodies[0]), requests[0].Header); err == nil {
			t.Error("the first attempt is an hour old and verifies")
		}
		if err := library.Verify([]byte(bodies[1]), requests[1].Header); err != nil {
			t.Errorf("the second attempt does not verify: %v", err)
		}
		tampered := append([]byte(bodies[1]), ' ')
		if err := library.Verify(tampered, requests[1].Header); err == nil {
			t.Error("another body verifies")
		}
	}
	if n := len(strings.Fields(requests[1].Header.Get("webhook-signature"))); n != 2 {
		t.Errorf("%d signatures, want one per secret", n)
	}
}

func TestEachAttemptIsSignedAnewByPrivateKeys(t *testing.T) {
	t.Parallel()
	var secrets []bridge.Secret
	var keys []ed25519.PublicKey
	for i := range byte(2) {
		seed := bytes.Repeat([]byte{i + 1}, ed25519.SeedSize)
		secrets = append(secrets, bridge.Secret("whsk_"+base64.StdEncoding.EncodeToString(seed)))
		keys = append(keys, ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey))
	}
	requests, bodies := attempts(t, bridge.TargetSigning{Scheme: "v1a", Secrets: secrets})
	for i, r := range requests {
		signatures := strings.Fields(r.Header.Get("webhook-signature"))
		if len(signatures) != len(keys) {
			t.Fatalf("%d signatures, want one per key", len(signatures))
		}
		for n, key := range keys {
			raw, ok := strings.CutPrefix(signatures[n], "v1a,")
			signature, err := base64.StdEncoding.DecodeString(raw)
			message := "dlv_abc." + r.Header.Get("webhook-timestamp") + "." + bodies[i]
			if !ok || err != nil || !ed25519.Verify(key, []byte(message), signature) {
				t.Errorf("attempt %d: signature %d does not verify", i+1, n+1)
			}
		}
	}
}

func TestUnsignedTargetsGetNoSignature(t *testing.T) {
	t.Parallel()
	requests, _ := attempts(t, bridge.TargetSigning{Scheme: "v1"})
	if got := requests[0].Header.Values("webhook-signature"); len(got) > 0 {
		t.Errorf("webhook-signature = %q", got)
	}
}
