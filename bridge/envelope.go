package bridge

import (
	"errors"
	"slices"
	"strconv"
	"time"
)

// maxReasonText bounds the response and the error text of a dead letter's
// reason.
const maxReasonText = 1 << 10

// NewDelivery is the delivery of a message popped from its own queue: nothing
// was tried yet.
func NewDelivery(route string, o Origin, payload []byte) Delivery {
	return Delivery{Route: route, Origin: o, Lineage: Lineage(route, o), Payload: payload}
}

// Event is the event inside. A payload that is no event of ours becomes one
// with the id and creation time of its message and the JSON text as body;
// everything else is empty (config.md). A payload of ours that cannot be read
// is an error: a dead letter of class undecodable.
func (d Delivery) Event() (Event, error) {
	if d.Payload == nil && d.Claim != nil {
		return Event{}, errors.New("its payload is not read back")
	}
	e, ours, err := DecodeEvent(d.Payload)
	if err != nil || ours {
		return e, err
	}
	return Event{
		ID:          d.Origin.TransactionID,
		Received:    d.Origin.CreatedAt.UTC(),
		ContentType: "application/json",
		Body:        d.Payload,
	}, nil
}

// AppendEnvelope appends the delivery as the payload of a retry, or of a dead
// letter where Dead is set: one JSON object with "queenbridge":1 first
// (design.md, "The event in the queue"). Payload is kept byte for byte, as a
// JSON string where it is valid UTF-8 without NUL, else in base64, so no
// re-encoding by a broker reaches it; or a Claim stands for it. In other texts
// what cannot be stored becomes U+FFFD.
func (d Delivery) AppendEnvelope(dst []byte) []byte {
	room := 640
	if d.Claim == nil {
		room += len(d.Payload) + len(d.Payload)/4
	}
	dst = slices.Grow(dst, room)
	dst = append(dst, `{"queenbridge":1,"retry":{"route":`...)
	dst = appendText(dst, d.Route)
	dst = append(dst, `,"origin":`...)
	dst = d.Origin.appendJSON(dst)
	dst = append(dst, `,"lineage":`...)
	dst = appendText(dst, d.Lineage)
	dst = append(dst, `,"hop":`...)
	dst = strconv.AppendInt(dst, int64(d.Hop), 10)
	dst = append(dst, `,"attempt":`...)
	dst = strconv.AppendInt(dst, int64(d.Attempt), 10)
	dst = append(dst, `,"first_failed":`...)
	dst = appendTime(dst, d.FirstFailed)
	dst = append(dst, `,"last_failed":`...)
	dst = appendTime(dst, d.LastFailed)
	dst = append(dst, `,"last":`...)
	dst = d.Last.appendJSON(dst)
	dst = append(dst, '}')
	if d.Dead != nil {
		dst = append(dst, `,"dead":`...)
		dst = d.Dead.appendJSON(dst)
	}
	if d.Claim != nil {
		return append(d.Claim.appendJSON(dst), '}')
	}
	dst = appendBytes(dst, "payload", d.Payload)
	return append(dst, '}')
}

func (o Origin) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"queue":`...)
	dst = appendText(dst, o.Queue)
	dst = append(dst, `,"partition":`...)
	dst = appendText(dst, o.Partition)
	dst = append(dst, `,"partitionId":`...)
	dst = appendText(dst, o.PartitionID)
	dst = append(dst, `,"transactionId":`...)
	dst = appendText(dst, o.TransactionID)
	dst = append(dst, `,"messageId":`...)
	dst = appendText(dst, o.MessageID)
	dst = append(dst, `,"createdAt":`...)
	dst = appendTime(dst, o.CreatedAt)
	return append(dst, '}')
}

func (f Failure) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"class":`...)
	dst = appendText(dst, string(f.Class))
	dst = append(dst, `,"status":`...)
	dst = strconv.AppendInt(dst, int64(f.Status), 10)
	dst = append(dst, `,"error":`...)
	dst = appendText(dst, f.Error)
	return append(dst, '}')
}

// appendTime appends t as RFC 3339 in UTC, null where it is zero.
func appendTime(dst []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(dst, "null"...)
	}
	dst = append(dst, '"')
	dst = t.UTC().AppendFormat(dst, time.RFC3339Nano)
	return append(dst, '"')
}

// Compact is the reason as Queen's DLQ row carries it: compact JSON with the
// eight members of config.md, an unknown time being null. Response and Error
// are cut to 1 KiB, between characters; NUL and what is not UTF-8 become
// U+FFFD, because PostgreSQL would refuse the row for ever (measured 1.3.0).
func (r DeadReason) Compact() string { return string(r.appendJSON(nil)) }

func (r DeadReason) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"route":`...)
	dst = appendText(dst, r.Route)
	dst = append(dst, `,"class":`...)
	dst = appendText(dst, string(r.Class))
	dst = append(dst, `,"attempts":`...)
	dst = strconv.AppendInt(dst, int64(r.Attempts), 10)
	dst = append(dst, `,"first":`...)
	dst = appendTime(dst, r.First)
	dst = append(dst, `,"last":`...)
	dst = appendTime(dst, r.Last)
	dst = append(dst, `,"status":`...)
	dst = strconv.AppendInt(dst, int64(r.Status), 10)
	dst = append(dst, `,"error":`...)
	dst = appendQuoted(dst, cutText(cleanText(r.Error), maxReasonText))
	dst = append(dst, `,"response":`...)
	dst = appendQuoted(dst, cutText(cleanText(r.Response), maxReasonText))
	return append(dst, '}')
}

// wireEnvelope is an envelope as it is read: members in any order, unknown
// ones ignored, names in exact case, no name twice.
type wireEnvelope struct {
	Retry struct {
		Route       string    `json:"route"`
		Origin      Origin    `json:"origin"`
		Lineage     string    `json:"lineage"`
		Hop         int       `json:"hop"`
		Attempt     int       `json:"attempt"`
		FirstFailed time.Time `json:"first_failed"`
		LastFailed  time.Time `json:"last_failed"`
		Last        Failure   `json:"last"`
	} `json:"retry"`
	Dead          *DeadReason `json:"dead"`
	Large         *Claim      `json:"large"`
	Payload       textBytes   `json:"payload"`
	PayloadBase64 []byte      `json:"payload_base64"`
}

// DecodeDelivery reads an envelope: the payload of a retry or dead letter.
// ours is false where the payload is anything else, an event of ours included.
// An envelope that cannot be read is an error, ErrVersion for one of a higher
// version.
func DecodeDelivery(payload []byte) (d Delivery, ours bool, err error) {
	return decodeOurs(payload, kindEnvelope, "envelope", wireEnvelope.delivery)
}

func (w wireEnvelope) delivery() (Delivery, error) {
	switch {
	case w.Retry.Route == "" || w.Retry.Lineage == "":
		return Delivery{}, errors.New("it has no route or no lineage")
	case w.Retry.Hop < 0 || w.Retry.Attempt < 0:
		return Delivery{}, errors.New("hop and attempt must be 0 or more")
	case w.Payload == nil && w.PayloadBase64 == nil && w.Large == nil:
		return Delivery{}, errors.New("it has no payload")
	case w.Payload != nil && w.PayloadBase64 != nil, w.Large != nil && (w.Payload != nil || w.PayloadBase64 != nil):
		return Delivery{}, errors.New("it has more than one of payload, payload_base64 and large")
	case w.Large != nil && w.Large.Size < 0:
		return Delivery{}, errors.New("the size of its payload must be 0 or more")
	}
	body := []byte(w.Payload)
	if w.PayloadBase64 != nil {
		body = w.PayloadBase64
	}
	origin := w.Retry.Origin
	origin.CreatedAt = origin.CreatedAt.UTC()
	return Delivery{
		Route: w.Retry.Route, Origin: origin, Lineage: w.Retry.Lineage,
		Hop: w.Retry.Hop, Attempt: w.Retry.Attempt,
		FirstFailed: w.Retry.FirstFailed.UTC(), LastFailed: w.Retry.LastFailed.UTC(),
		Last: w.Retry.Last, Payload: body, Claim: w.Large, Dead: w.Dead,
	}, nil
}
