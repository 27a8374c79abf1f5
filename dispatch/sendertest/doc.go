// Package sendertest is what any dispatch.Sender must do, as one test suite;
// the suite is the specification. What one kind of function needs beyond it
// (headers, encodings, credentials) is left to that Sender's own tests.
package sendertest
