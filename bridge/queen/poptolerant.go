package queen

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Every broker measured writes a message's data and then its producerSub. A
// quotation mark inside a string stands escaped, so the last such bytes of an
// answer are the broker's own, whatever the payload holds.
var afterData = []byte(`,"producerSub":`)

var errFoundData = errors.New("data found")

// decodePopTolerant reads an answer of one message whose payload is not JSON:
// it takes the payload out, by what stands around it, and reads the rest.
func decodePopTolerant(body []byte) (popBody, error) {
	start, err := dataStart(body)
	if err != nil {
		return popBody{}, err
	}
	end := bytes.LastIndex(body, afterData)
	if end < start {
		return popBody{}, errors.New("no end of the payload")
	}
	patched := make([]byte, 0, len(body)-(end-start)+len("null"))
	patched = append(append(append(patched, body[:start]...), "null"...), body[end:]...)
	p, err := decodePop(patched)
	if err != nil {
		return popBody{}, err
	}
	if len(p.messages) != 1 {
		return popBody{}, errors.New("not exactly one message")
	}
	m := &p.messages[0]
	m.Data = json.RawMessage(body[start:end:end])
	m.BadData = !json.Valid(m.Data)
	return p, nil
}

// dataStart is the offset behind the colon of the first message's "data".
func dataStart(body []byte) (int, error) {
	d := newPopDecoder(body)
	err := d.object(func(name string) error {
		if name != "messages" {
			return d.SkipValue()
		}
		return d.array(func() error {
			return d.object(func(name string) error {
				if name == "data" {
					return errFoundData
				}
				return d.SkipValue()
			})
		})
	})
	if !errors.Is(err, errFoundData) {
		return 0, errors.New("no data in the answer")
	}
	at := int(d.InputOffset())
	colon := bytes.IndexByte(body[at:], ':')
	if colon < 0 || len(bytes.TrimLeft(body[at:at+colon], " \t\r\n")) > 0 {
		return 0, errors.New("no value behind data")
	}
	return at + colon + 1, nil
}
