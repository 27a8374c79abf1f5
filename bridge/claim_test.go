package bridge_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
)

func TestClaimGivesThePayloadBack(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{`{"a":1}`, "", "null", "\x00\xff", "\"\\u0000\\ud800\" é\n", strings.Repeat("\\", 1000)} {
		claim := bridge.NewClaim([]byte(payload))
		stored := bridge.AppendLarge(nil, []byte(payload))
		got, err := claim.Open(stored)
		if err != nil || string(got) != payload {
			t.Errorf("Open(%q) = %q, %v", stored, got, err)
		}
		// As Queen shows a message: encoded again.
		var v any
		if err := json.Unmarshal(stored, &v); err != nil {
			t.Fatalf("stored %q: %v", stored, err)
		}
		again, _ := json.Marshal(v)
		if got, err := claim.Open(again); err != nil || string(got) != payload {
			t.Errorf("Open(%q) = %q, %v", again, got, err)
		}
	}
}

func TestClaimRefusesAnotherPayload(t *testing.T) {
	t.Parallel()
	claim := bridge.NewClaim([]byte("secret payload"))
	for _, stored := range []string{`"another payload"`, `""`, `{"base64":""}`, `{}`, `null`, ``, `7`, `"`, `{"base64":"!"}`} {
		got, err := claim.Open([]byte(stored))
		if err == nil {
			t.Errorf("Open(%q) = %q", stored, got)
		}
	}
	if _, err := claim.Open([]byte(`"another payload"`)); !errors.Is(err, bridge.ErrOtherPayload) || strings.Contains(err.Error(), "another") {
		t.Errorf("error = %v", err)
	}
}

func TestEnvelopeWithAClaim(t *testing.T) {
	t.Parallel()
	d := sampleDelivery()
	d.Claim = bridge.NewClaim(d.Payload)
	envelope := d.AppendEnvelope(nil)
	if bytes.Contains(envelope, []byte(`"payload`)) || len(envelope) > 1000 {
		t.Errorf("envelope = %s", envelope)
	}
	got, ours, err := bridge.DecodeDelivery(envelope)
	want := d
	want.Payload = nil
	if diff := cmp.Diff(want, got); diff != "" || !ours || err != nil {
		t.Errorf("DecodeDelivery: ours %v, %v (-want +got):\n%s", ours, err, diff)
	}
	if _, err := got.Event(); err == nil {
		t.Error("Event of a payload that is not read back succeeds")
	}
	both := strings.Replace(string(envelope), `,"large"`, `,"payload":"x","large"`, 1)
	if _, _, err := bridge.DecodeDelivery([]byte(both)); err == nil {
		t.Errorf("DecodeDelivery(%s) succeeds", both)
	}
}

func FuzzClaim(f *testing.F) {
	f.Add([]byte(`"x"`))
	f.Add([]byte(`{"base64":"eA=="}`))
	f.Add([]byte(`{"queenbridge":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		claim := bridge.NewClaim(data)
		if got, err := claim.Open(bridge.AppendLarge(nil, data)); err != nil || !bytes.Equal(got, data) {
			t.Errorf("Open(AppendLarge(%q)) = %q, %v", data, got, err)
		}
		_, _ = claim.Open(data)
	})
}
