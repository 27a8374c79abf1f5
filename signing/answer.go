package signing

import "net/http"

// answerFunc is the answer to an accepted request where it depends on the
// request; false means [Preset.Answer].
type answerFunc func(r *Request) (Answer, bool)

// Answer is the answer to a request that was proven and stored, where the
// provider wants another than [Preset.Answer]; false where it does not.
func (v *Verifier) Answer(r *Request) (Answer, bool) {
	if v.row.answer == nil {
		return Answer{}, false
	}
	return v.row.answer(r)
}

// discordAnswer tells webhook events from interactions by the member event:
// both use type 1. An interaction is answered "later" (deferred), or with no
// choices, as nobody computes an answer here.
func discordAnswer(r *Request) (Answer, bool) {
	values := NewValues(r)
	if doc, ok := values.at(wholeDocument); !ok || doc[0] != '{' {
		return Answer{}, false
	}
	if values.doc.has("event") {
		return Answer{}, false
	}
	raw, _ := values.at("type")
	switch string(raw) {
	case "2", "5":
		return jsonAnswer(`{"type":5}`), true
	case "3":
		return jsonAnswer(`{"type":6}`), true
	case "4":
		return jsonAnswer(`{"type":8,"data":{"choices":[]}}`), true
	}
	return Answer{}, false
}

func jsonAnswer(body string) Answer {
	return Answer{Status: http.StatusOK, Body: body, ContentType: "application/json"}
}

// adobeAnswer repeats the client id: Adobe disables a webhook whose answers
// lack it.
func adobeAnswer(r *Request) (Answer, bool) {
	value, _ := headerValue(r.Header, adobeClientID)
	return Answer{Status: http.StatusOK, Header: http.Header{http.CanonicalHeaderKey(adobeClientID): {value}}}, true
}
