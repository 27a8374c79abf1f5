package signing_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/queenbridge/queenbridge/signing"
)

// A preset needs no more than its secret.
func Example() {
	v, problems := signing.New(signing.Options{Scheme: "github", Secrets: []string{"It's a Secret to Everybody"}})
	if len(problems) > 0 {
		fmt.Println(problems)
		return
	}
	proof, err := v.Verify(&signing.Request{
		Method: http.MethodPost,
		Header: http.Header{"X-Hub-Signature-256": {"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}},
		Body:   []byte("Hello, World!"),
		Now:    time.Now(),
	})
	fmt.Println(proof.Class, err)
	// Output: verified <nil>
}

// A scheme without a preset is described with options.
func ExampleNew_hmac() {
	v, problems := signing.New(signing.Options{
		Scheme:  "hmac",
		Secrets: []string{"s3cret"},
		SchemeOptions: map[string]any{
			"header": "Acme-Signature", "format": "pairs", "timestamp_key": "t", "signature_key": "v1",
			"message": "{timestamp}.{body}", "tolerancee": "60s",
		},
	})
	fmt.Println(v == nil, problems[0].Path)
	// Output: true scheme_options.tolerancee
}

// Ids are read as they were written, whatever a float would make of them.
func ExampleValues_JSON() {
	v := signing.NewValues(&signing.Request{Body: []byte(`{"account":{"id":9007199254740993}}`)})
	fmt.Println(v.JSON("account.id"))
	// Output: 9007199254740993 true
}

func ExampleSigner_Sign() {
	s, err := signing.NewSigner("v1", []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Sign("msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`)))
	// Output: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
}
