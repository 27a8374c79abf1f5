package queen

import (
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// popBody is a pop's answer as far as it was read.
type popBody struct {
	failed, listed                  bool // success false; messages there
	err                             string
	leaseID, partition, partitionID string
	messages                        []Message
}

func (p *popBody) firstTransactionID() string {
	if len(p.messages) == 0 {
		return ""
	}
	return p.messages[0].TransactionID
}

// decodePop reads a pop's answer. Data are slices of body, byte for byte. On
// an error it returns what stood before the fault.
//
// A name given twice in a message is a fault: a payload that is not JSON, say
// `1,"transactionId":"x"`, spliced in raw, would else rewrite its message.
func decodePop(body []byte) (popBody, error) {
	d := newPopDecoder(body)
	err := d.object(d.topField)
	if err == nil {
		if _, end := d.ReadToken(); !errors.Is(end, io.EOF) {
			err = errors.New("bytes after the answer")
		}
	}
	if err == nil && !d.listed {
		err = errors.New("no messages in the answer")
	}
	return d.popBody, err
}

type popDecoder struct {
	*jsontext.Decoder
	popBody
	body  []byte
	names []string // of members, as they were seen
}

func newPopDecoder(body []byte) *popDecoder {
	// A payload may hold what the options allow: Queen kept it verbatim.
	return &popDecoder{body: body, Decoder: jsontext.NewDecoder(bytes.NewBuffer(body),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
}

// maxNames bounds the names that are kept: a row of an answer has fewer.
const maxNames = 32

// name is a member's name; those of the rows before are not made again.
func (d *popDecoder) name(raw jsontext.Value) string {
	inner := raw[1 : len(raw)-1]
	for _, known := range d.names {
		if string(inner) == known {
			return known
		}
	}
	name := unquoted(raw)
	if len(d.names) < maxNames && name == string(inner) {
		d.names = append(d.names, name)
	}
	return name
}

// unquoted is what a JSON string says; what is no UTF-8 in it becomes U+FFFD.
func unquoted(raw jsontext.Value) string {
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	s, _ := jsontext.AppendUnquote(nil, raw) // errs only about what is no UTF-8
	return string(s)
}

// object reads an object, handing each name to field, which reads its value.
func (d *popDecoder) object(field func(name string) error) error {
	if err := d.expect('{'); err != nil {
		return err
	}
	var seenArray [16]string
	seen := seenArray[:0]
	for d.PeekKind() == '"' {
		raw, err := d.ReadValue()
		if err != nil {
			return err
		}
		name := d.name(raw)
		if slices.Contains(seen, name) {
			return fmt.Errorf("name %q twice in one object", clip(name, 64))
		}
		seen = append(seen, name)
		if err := field(name); err != nil {
			return err
		}
	}
	return d.expect('}')
}

// array reads an array; element reads each of its values.
func (d *popDecoder) array(element func() error) error {
	if err := d.expect('['); err != nil {
		return err
	}
	for k := d.PeekKind(); k != ']' && k != 0; k = d.PeekKind() {
		if err := element(); err != nil {
			return err
		}
	}
	return d.expect(']')
}

func (d *popDecoder) expect(kind jsontext.Kind) error {
	t, err := d.ReadToken()
	if err == nil && t.Kind() != kind {
		err = fmt.Errorf("%v where %v was expected", t.Kind(), kind)
	}
	return err
}

func (d *popDecoder) topField(name string) (err error) {
	switch name {
	case "success":
		t, err := d.ReadToken()
		d.failed = err == nil && t.Kind() == 'f'
		return err
	case "error":
		d.err, err = d.text("")
	case "leaseId":
		d.leaseID, err = d.text("")
	case "partition":
		d.partition, err = d.text("")
	case "partitionId":
		d.partitionID, err = d.text("")
	case "messages":
		d.listed = true
		return d.array(d.message)
	default:
		return d.SkipValue()
	}
	return err
}

// message reads one message. Names repeat from message to message: their
// strings are shared.
func (d *popDecoder) message() error {
	var before Message
	if n := len(d.messages); n > 0 {
		before = d.messages[n-1]
	}
	d.messages = append(d.messages, Message{})
	m := &d.messages[len(d.messages)-1]
	lease, identified := d.leaseID, false
	err := d.object(func(name string) (err error) {
		switch name {
		case "id":
			m.ID, err = d.text("")
		case "transactionId":
			m.TransactionID, err = d.text("")
			identified = true
		case "partition":
			m.Partition, err = d.text(before.Partition)
		case "partitionId":
			m.PartitionID, err = d.text(before.PartitionID)
		case "leaseId":
			lease, err = d.text(lease)
		case "data":
			m.Data, err = d.raw()
		case "createdAt":
			m.CreatedAt, err = d.time()
		case "deliveryAttempt":
			m.DeliveryAttempt, err = d.count()
		default:
			return d.SkipValue()
		}
		return err
	})
	if err != nil {
		return err
	}
	if !identified { // an empty one is an id like any other (measured 1.3.0)
		return errors.New("a message without transactionId")
	}
	return m.complete(lease, d.leaseID)
}

// complete refuses a message that could not be settled.
func (m *Message) complete(lease, popLease string) error {
	switch {
	case m.ID == "" || m.PartitionID == "":
		return errors.New("a message without id or partitionId")
	case lease != popLease:
		return errors.New("a message under another lease than its pop")
	case m.Data == nil:
		return errors.New("a message without data")
	}
	return nil
}

// raw is the next value, a slice of the body.
func (d *popDecoder) raw() (json.RawMessage, error) {
	v, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(d.InputOffset())
	return json.RawMessage(d.body[end-len(v) : end : end]), nil
}

// text reads a string or null. Where it equals before, that one is returned.
func (d *popDecoder) text(before string) (string, error) {
	v, err := d.ReadValue()
	switch {
	case err != nil:
		return "", err
	case v.Kind() == 'n':
		return "", nil
	case v.Kind() != '"':
		return "", fmt.Errorf("%v where a string was expected", v.Kind())
	case before != "" && string(v[1:len(v)-1]) == before && bytes.IndexByte(v, '\\') < 0:
		return before, nil
	}
	return unquoted(v), nil
}

// anyText reads a string; any other JSON is passed over.
func (d *popDecoder) anyText() (string, error) {
	if d.PeekKind() != '"' {
		return "", d.SkipValue()
	}
	return d.text("")
}

// time reads a time; one it cannot read is zero: nothing is decided by it.
func (d *popDecoder) time() (time.Time, error) {
	s, err := d.text("")
	if err != nil {
		return time.Time{}, err
	}
	return wireTime(s), nil
}

// count reads an integer or null.
func (d *popDecoder) count() (int, error) {
	v, err := d.ReadValue()
	if err != nil || v.Kind() == 'n' {
		return 0, err
	}
	return strconv.Atoi(string(v))
}

// wireTime reads any of Queen's time forms (queen-contract.md §0), all RFC
// 3339 with a fraction. Zero if it is none.
func wireTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}
