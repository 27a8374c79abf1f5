package signing

import (
	"bytes"
	"net/http"
	"regexp"
)

// snsSubscribe is where a subscription may be confirmed.
var snsSubscribe = regexp.MustCompile(`^https://sns\.[a-z0-9-]{3,}\.amazonaws\.com(\.cn)?/[!-~]*$`)

// maxSubscribeURL bounds a SubscribeURL, in bytes: it holds a token and the
// TopicArn.
const maxSubscribeURL = 2048

// snsConfirm answers the (un)subscription of a topic that is allowed. The
// caller confirms it with a GET once the answer is on its way.
func snsConfirm(v *Verifier, r *Request) (Reply, bool, error) {
	if r.Method != http.MethodPost || !bytes.Contains(r.Body, []byte("Confirmation")) {
		return Reply{}, false, nil // without parsing what is an event
	}
	in := input{request: r, url: v.publicURL}
	doc, ok := in.document()
	if kind, _ := doc.text("Type"); !ok || kind != "SubscriptionConfirmation" && kind != "UnsubscribeConfirmation" {
		return Reply{}, false, nil
	}
	if _, err := v.Verify(r); err != nil {
		return Reply{}, true, err
	}
	address, _ := doc.text("SubscribeURL")
	if len(address) > maxSubscribeURL || !snsSubscribe.MatchString(address) {
		return badHandshake("SubscribeURL"), true, nil
	}
	reply := Reply{Status: http.StatusOK}
	if v.scheme.settings.confirm {
		reply.Confirm = address
	}
	return reply, true, nil
}
