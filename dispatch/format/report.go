package format

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"strings"
)

// MaxReport is how much of an answer may be a report, in bytes: 256 ids of the
// longest kind, with room.
const MaxReport = 256 << 10

// Why a report cannot be told apart from a failure of the whole batch.
var (
	errReportJSON    = errors.New("the report of failed items is not JSON")
	errReportShape   = errors.New("the report of failed items is no object with a list batchItemFailures")
	errReportID      = errors.New("the report of failed items names no item: each needs an itemIdentifier")
	errReportUnknown = errors.New("the report of failed items names an item that is not in the batch")
)

// ParseReport reads {"batchItemFailures":[{"itemIdentifier":"…"}]}, the answer
// of a function that handled some items of a batch, and says which of the
// items with the given ids failed; nil: none.
//
// The rules are Lambda's for batches of SQS
// (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html):
// everything is done where the answer is empty or null, or where the list is
// absent, empty or null. An error says that the whole batch must be taken for
// failed: an itemIdentifier that is empty, null, absent, misnamed or in no
// item, a list that is none, an answer that is no JSON object. A list whose
// name differs in case only is an error, too: to take it for absent would ack
// what failed.
//
// With indexed an itemIdentifier is the item's position and may also be a
// number. An id that several items have stands for all of them.
func ParseReport(answer []byte, ids []string, indexed bool) (failed []bool, err error) {
	list, err := reportList(answer)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	at := make(map[string][]int, len(ids))
	for i, id := range ids {
		at[id] = append(at[id], i)
	}
	failed = make([]bool, len(ids))
	for _, element := range list {
		id, err := itemIdentifier(element, indexed)
		if err != nil {
			return nil, err
		}
		if len(at[id]) == 0 {
			return nil, errReportUnknown
		}
		for _, i := range at[id] {
			failed[i] = true
		}
	}
	return failed, nil
}

// reportList is the list of an answer; none where everything is done.
func reportList(answer []byte) ([]jsontext.Value, error) {
	answer = bytes.TrimSpace(answer)
	if len(answer) == 0 || string(answer) == "null" {
		return nil, nil
	}
	var members map[string]jsontext.Value
	switch value := jsontext.Value(answer); {
	case !value.IsValid():
		return nil, errReportJSON
	case value.Kind() != '{', json.Unmarshal(value, &members) != nil:
		return nil, errReportShape
	}
	const name = "batchItemFailures"
	for key := range members {
		if key != name && strings.EqualFold(key, name) {
			return nil, errReportShape
		}
	}
	value, present := members[name]
	if !present || value.Kind() == 'n' {
		return nil, nil
	}
	var list []jsontext.Value
	if value.Kind() != '[' || json.Unmarshal(value, &list) != nil {
		return nil, errReportShape
	}
	return list, nil
}

// itemIdentifier is what one element of the list names.
func itemIdentifier(element jsontext.Value, indexed bool) (string, error) {
	var item struct {
		ID jsontext.Value `json:"itemIdentifier"`
	}
	if element.Kind() != '{' || json.Unmarshal(element, &item) != nil {
		return "", errReportID
	}
	switch {
	case item.ID.Kind() == '"':
		if id, err := jsontext.AppendUnquote(nil, item.ID); err == nil && len(id) > 0 {
			return string(id), nil
		}
	case indexed && item.ID.Kind() == '0':
		return string(item.ID), nil
	}
	return "", errReportID
}
