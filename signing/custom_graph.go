package signing

import "net/http"

// Microsoft Graph puts a secret of the subscriber's into every notification
// (Microsoft Graph, "Receive change notifications through webhooks"). One
// request may hold notifications of several subscriptions, so every one is
// checked.

const (
	graphItems  = "value"
	graphSecret = "clientState"
)

func proveGraph(v *Verifier, in *input) (Proof, error) {
	secret, rej := in.everyItem(graphItems, func(raw []byte) (int, *Rejection) {
		doc := document{raw: raw}
		state, ok := doc.text(graphSecret)
		if !ok {
			return -1, reject(ReasonMissingCredential, "%s of a notification", graphSecret)
		}
		secret := v.matchToken(state)
		if secret < 0 {
			return -1, reject(ReasonBadCredential, "%s of a notification equals no secret of this source", graphSecret)
		}
		return secret, nil
	})
	if rej != nil {
		return Proof{}, rej
	}
	return Proof{Class: Authenticated, Secret: secret}, nil
}

// graphValidation echoes the token of a subscription that is being made.
func graphValidation(_ *Verifier, r *Request) (Reply, bool, error) {
	if r.Method != http.MethodPost {
		return Reply{}, false, nil
	}
	text, is := queryText(r, "validationToken")
	if !is {
		return Reply{}, false, nil
	}
	return echo(text), true, nil
}

// signGraph writes the secret into the notifications that have none.
func signGraph(_ *Verifier, in *input, o Options) error {
	return in.insertIntoItems(graphItems, graphSecret, quoteJSON(o.Secrets[0]))
}
