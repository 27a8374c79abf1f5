package signing_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"testing"

	"github.com/queenbridge/queenbridge/signing"
)

func basic(text string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(text))
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	const missing, bad = signing.ReasonMissingCredential, signing.ReasonBadCredential
	header := func(name string, values ...string) *signing.Request {
		return &signing.Request{Method: "POST", Header: http.Header{http.CanonicalHeaderKey(name): values}}
	}
	query := func(raw string) *signing.Request { return &signing.Request{Method: "POST", RawQuery: raw} }
	body := func(text string) *signing.Request { return &signing.Request{Method: "POST", Body: []byte(text)} }
	tests := []struct {
		scheme  string
		options map[string]any
		secrets []string
		r       *signing.Request
		want    signing.Reason // "" = accepted
		secret  int
	}{
		{"gitlab-token", nil, []string{"new", "old"}, header("X-Gitlab-Token", "new"), "", 0},
		{"gitlab-token", nil, []string{"new", "old"}, header("X-Gitlab-Token", "old", "old"), "", 1},
		{"gitlab-token", nil, []string{"new"}, header("X-Gitlab-Token", "new", "x"), dup, 0},
		{"gitlab-token", nil, []string{"new"}, header("X-Gitlab-Token", "ne"), bad, 0},
		{"gitlab-token", nil, []string{"new"}, header("X-Gitlab-Token", "New"), bad, 0},
		{"gitlab-token", nil, []string{"new"}, header("X-Gitlab-Token", ""), missing, 0},
		{"gitlab-token", nil, []string{"new"}, header("webhook-signature", "v1,x"), missing, 0},
		{"token", opts("header", "Authorization", "prefix", "Bearer "), []string{"t"}, header("Authorization", "Bearer t"), "", 0},
		{"token", opts("header", "Authorization", "prefix", "Bearer "), []string{"t"}, header("Authorization", "t"), bad, 0},
		{"token", opts("header", "Authorization", "prefix", "Bearer "), []string{"t"}, header("Authorization", "Bearer "), bad, 0},
		{"token", opts("query", "code"), []string{"a b+"}, query("x=%zz&code=a+b%2B"), "", 0},
		{"token", opts("query", "code"), []string{"a"}, query("code=a&code=b"), missing, 0},
		{"token", opts("query", "code"), []string{"a"}, query("code=a&code=a"), "", 0},
		{"token", opts("query", "code"), []string{"a"}, query("Code=a"), missing, 0},
		{"token", opts("query", "code"), []string{"a"}, query(""), missing, 0},
		{"token", opts("json", "auth.token"), []string{"a"}, body(`{"auth":{"token":"a"}}`), "", 0},
		{"token", opts("json", "auth.token"), []string{"a"}, body(`{"auth":{"token":"b"}}`), bad, 0},
		{"token", opts("json", "auth.token"), []string{"a"}, body(`{"auth":{"token":"a","token":"b"}}`), missing, 0},
		{"basic", nil, []string{"user:pa:ss"}, header("Authorization", basic("user:pa:ss")), "", 0},
		{"basic", nil, []string{"u:1", "u:é"}, header("Authorization", "bASIC  "+basic("u:é")[6:]), "", 1},
		{"basic", nil, []string{"u:p"}, header("Authorization", basic("u:P")), bad, 0},
		{"basic", nil, []string{"u:p"}, header("Authorization", basic("u")), bad, 0},
		{"basic", nil, []string{"u:p"}, header("Authorization", basic("")), bad, 0},
		{"basic", nil, []string{"u:p"}, header("Authorization", "Bearer "+basic("u:p")[6:]), bad, 0},
		{"basic", nil, []string{"u:p"}, header("Authorization", "Basic u:p"), bad, 0},
		{"basic", nil, []string{"u:p"}, header("Authorization", "Basic"), bad, 0},
		{"basic", nil, []string{"u:p"}, header("X"), missing, 0},
		{"basic", nil, []string{"u:p"}, header("Authorization", basic("u:p"), basic("u:q")), dup, 0},
	}
	for _, tt := range tests {
		v, problems := signing.New(signing.Options{Scheme: tt.scheme, Secrets: tt.secrets, SchemeOptions: tt.options})
		if len(problems) > 0 {
			t.Errorf("New(%s %v) = %v", tt.scheme, tt.options, problems)
			continue
		}
		proof, err := v.Verify(tt.r)
		if tt.want == "" {
			if want := (signing.Proof{Class: signing.Authenticated, Secret: tt.secret}); err != nil || proof != want {
				t.Errorf("Verify(%s, %v) = %+v, %v, want %+v", tt.scheme, tt.r, proof, err, want)
			}
			continue
		}
		var rejection *signing.Rejection
		if !errors.As(err, &rejection) || rejection.Reason != tt.want {
			t.Errorf("Verify(%s, %v) = %+v, %v, want %s", tt.scheme, tt.r, proof, err, tt.want)
		}
	}
}

func TestNone(t *testing.T) {
	t.Parallel()
	v, problems := signing.New(signing.Options{Scheme: "none"})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := signing.Proof{Class: signing.Unproven, Secret: -1}
	if proof, err := v.Verify(&signing.Request{}); err != nil || proof != want {
		t.Errorf("Verify = %+v, %v, want %+v", proof, err, want)
	}
}
