// Package format makes the body of one request from one or more events: as
// they are, as a JSON array, as lines, as CloudEvents, or as the event
// documents that SQS hands to Lambda functions. Which events go together, and
// what becomes of the answer, is left to package dispatch.
//
// # What a function gets
//
// A route with batch.size 1 (the default) sends one event per call; any other
// route sends a batch, also where it holds a single event: a function never
// has to tell the two apart.
//
//	format                  one event                        a batch
//	passthrough             the body, byte for byte,         a JSON array of the bodies
//	                        with the event's headers
//	ndjson                  one line                         a line per event
//	cloudevents-binary      the body, the event's headers,   refused by the configuration
//	                        attributes as ce- headers
//	cloudevents-structured  one CloudEvent                   refused by the configuration
//	cloudevents-batch       an array of one CloudEvent       an array of CloudEvents
//	sqs                     Records with one record          Records with a record per event
//
// The payload of a Lambda target chooses among the same: sqs; raw, the body
// itself or an array of bodies; cloudevents, one CloudEvent or an array.
//
// # Bodies
//
// A body that is JSON is put into the array, line or CloudEvent as it is,
// never decoded and encoded again: big numbers, key order, repeated keys and
// spaces stay. Only ndjson, whose separator is the line break, has a space in
// place of each line break between two tokens. A body that is other text
// becomes a JSON string, and one that is no UTF-8 the object
// {"body_base64":"…"}; CloudEvents have data_base64 for that. In an SQS record
// the body is always a string: the text, or base64 where it is no UTF-8, which
// the message attribute queen-body-encoding then says.
//
// # Which event is which
//
// A function that reports failed items names them by the id it saw: messageId
// in sqs, id in CloudEvents, the position in an array or the number of the
// line, counted from 0, in other batches, and webhook-id where one event is
// sent alone as it is. See ParseReport.
package format
