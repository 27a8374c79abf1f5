// Package filter compiles and evaluates the expressions and patterns of routes:
// which events a route wants, and what is made of them. What becomes of an event
// that is not wanted, or whose evaluation fails, is left to the dispatcher;
// where an expression was written to the one who read the configuration. It is
// the only package that knows CEL.
//
// # What an expression knows
//
// One thing, the event (config.md):
//
//	event.id       string       the transaction id
//	event.type     string       "" where the source knows none
//	event.source   string
//	event.time     timestamp    when it was received
//	event.method   string
//	event.path     string
//	event.query    map          name to value; repeated values joined with ","
//	event.headers  map          name in lower case to value; repeated ones joined with ","
//	event.body     anything     the parsed JSON, else a string, else bytes
//
// A message that is no event of ours has its transaction id as id, its
// creation time as time and its JSON as body; the rest is empty.
//
// The language is the Common Expression Language with its standard functions
// and macros, optional values (event.body.?pull_request.?merged.orValue(false)),
// cel.bind, and these extensions of CEL, each bounded: the functions on strings
// (lowerAscii, split, substring, trim, join, replace, indexOf and so on; not
// format), math (math.greatest, math.round, …), base64.encode and
// base64.decode, json.encode and json.parse.
//
// # Numbers
//
// JSON numbers without fraction and exponent stay exact: int where they fit 64
// bits, else uint. Larger ones, and those with fraction or exponent, are
// doubles, the nearest there is (infinite where there is none): two ids above
// 18446744073709551615 that differ only in their last digits compare as equal.
// Numbers of different types compare by value. Of names that stand twice in an
// object the last counts; what is no Unicode in a string becomes U+FFFD.
//
// # Patterns
//
// A Pattern asks the same of the same event in the language of Amazon
// EventBridge: a map from fields to lists of alternatives, of which one must
// match; maps in it ask for members of the body, the headers and the query;
// all fields must match, of $or one branch.
//
//	type: [push]
//	body: {repository: {full_name: [{prefix: octo/}]}, size: [{numeric: [">", 0]}]}
//
// An alternative is a value (a text, a number, true, false, null) or one of
// prefix, suffix, equals-ignore-case (also inside prefix and suffix), wildcard,
// numeric, cidr, exists and anything-but. All but exists: false need a single
// value to be there; anything-but also matches values of other types. Of a list
// one element must match, and one element must have all members that are asked
// for together. exists asks for single values: a map is none, an empty list has
// none, and with exists: false no element of any list on the way may have one.
//
// Times are texts, as 2026-11-20T08:30:15.123456Z. Numbers are compared by
// value (300 is 3e2) and exactly, whatever their size; EventBridge's own bounds
// of numbers do not hold here. A body that is no JSON is a text, one that is no
// text equals nothing: neither has members, so that a pattern that asks for some
// does not match, exists: false excepted. $or is always the operator.
//
// # Transforms
//
// A Transform makes an event of an event. Its body is an expression: a text or
// bytes become the body as they are; a map, a list, a number, true, false or
// null become JSON, with the names of a map in their order. Integers of 64 bits
// stay exact; a part of the body that is passed on as a whole, such as
// event.body.repository, keeps all its numbers as they were written, and a
// single one that is no such integer becomes the nearest double. In JSON, bytes
// are base64, times RFC 3339, durations seconds (90.5s).
//
//	transform:
//	  body: '{"text": "New push to " + event.body.repository.full_name}'
//	  headers: {x-ref: event.body.ref, x-draft: 'event.body.?draft', x-hub-signature-256: 'null'}
//
// A header is a text, or null (or an optional value that is not there) to take
// away what the event has of it. Without a body expression the body stays byte
// for byte. What a provider signed no longer proves a body that was made anew.
//
// # Promises
//
//   - A filter's result is true or false: the rest does not compile, or is an
//     error where only the event tells.
//   - What an expression names is checked when it is compiled; problems say
//     where and, for a typing error, what was meant.
//   - Only what an expression reads is decoded, and only when it is reached:
//     event.type == "push" && event.body.ref == "refs/heads/main" looks at no
//     body of another type.
//   - An evaluation is bounded in steps and in what is decoded, and stops when
//     its context ends.
//   - No error holds a part of an event's body, headers or query.
//   - What a pattern asks for is checked as a whole; each problem has its path.
//   - A transform gives the same bytes for the same event, at most 10 MiB of
//     JSON or 1 MiB of text, and sets no header that frames a call or identifies
//     its delivery.
//   - A Filter, a Pattern or a Transform may be used by many goroutines at once.
package filter
