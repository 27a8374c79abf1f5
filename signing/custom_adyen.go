package signing

// Adyen signs each item of a batch by itself, inside the body (Adyen, "Verify
// HMAC signatures"). Every item is checked: checking the first one only would
// let forged items ride along.

// adyenSigned are the signed values of an item, in order. An absent one is
// empty text; nothing is escaped.
var adyenSigned = []string{
	"pspReference", "originalReference", "merchantAccountCode", "merchantReference",
	"amount.value", "amount.currency", "eventCode", "success",
}

const (
	adyenItems     = "notificationItems"
	adyenItem      = "NotificationRequestItem"
	adyenSignature = "additionalData.hmacSignature"
)

func proveAdyen(v *Verifier, in *input) (Proof, error) {
	secret, rej := in.everyItem(adyenItems, v.proveAdyenItem)
	if rej != nil {
		return Proof{}, rej
	}
	return Proof{Class: Verified, Secret: secret}, nil
}

func (v *Verifier) proveAdyenItem(raw []byte) (int, *Rejection) {
	doc := document{raw: raw}
	inner, ok := doc.at(adyenItem)
	if !ok {
		return -1, reject(ReasonMissingSignature, "an item has no %s", adyenItem)
	}
	item := document{raw: inner}
	message, rej := adyenMessage(&item)
	if rej != nil {
		return -1, rej
	}
	signature, ok := item.text(adyenSignature)
	if !ok {
		return -1, reject(ReasonMissingSignature, "an item has no %s", adyenSignature)
	}
	var found candidates
	if rej := found.add("", signature); rej != nil {
		return -1, rej
	}
	if secret := v.match([]piece{{bytes: message}}, &found); secret >= 0 {
		return secret, nil
	}
	return -1, reject(ReasonBadSignature, "%s of an item: no secret of this source made it", adyenSignature)
}

// adyenMessage joins the signed values. A member that stands twice with
// different values is refused, not taken for absent: an item whose value was
// empty when it was signed could be given one.
func adyenMessage(item *document) ([]byte, *Rejection) {
	var message []byte
	for i, path := range adyenSigned {
		if i > 0 {
			message = append(message, ':')
		}
		raw, state := item.find(path)
		if state == ambiguous {
			return nil, reject(ReasonMalformedBody, "an item has two values of %s", path)
		}
		if state == missing || string(raw) == "null" || string(raw) == `""` {
			continue
		}
		value, ok := scalar(raw)
		if !ok {
			return nil, reject(ReasonMalformedBody, "%s of an item is no text, number or boolean", path)
		}
		message = append(message, value...)
	}
	return message, nil
}

// signAdyen signs the items that have no signature yet.
func signAdyen(v *Verifier, in *input, _ Options) error {
	items, _ := in.valuesOf().Items(adyenItems)
	var insertions []insertion
	for _, item := range items {
		doc := document{raw: item.raw}
		inner, _ := doc.at(adyenItem)
		request := document{raw: inner}
		if _, signed := request.at(adyenSignature); len(inner) == 0 || signed {
			continue
		}
		message, rej := adyenMessage(&request)
		if rej != nil {
			return rej
		}
		member := `"additionalData":{"hmacSignature":"` + v.mac(message) + `"}`
		target := inner
		if data, ok := request.at("additionalData"); ok {
			target, member = data, member[len(`"additionalData":{`):len(member)-1]
		}
		insertions = append(insertions, insertion{target, member})
	}
	body, err := insertMembers(in.request.Body, insertions)
	if err == nil {
		in.request.Body, in.values = body, nil
	}
	return err
}
