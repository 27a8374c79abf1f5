// Package adminapi has the wire types of the admin API and its client. It
// knows how a request is written and an answer is read; what the API does is
// package admin, and what a resource means is package bridge.
//
// A resource is a document with the fields of a configuration file, as it was
// written, and beside them "meta": who owns it, its version, and what is wrong
// with it. What [Client.Read] returned may be written back: meta is ignored on
// writes.
//
// # Secrets
//
// A secret is never returned. A literal one is sealed when it is written and
// reads as ${sealed:ID}, where ID is a random name that says nothing about the
// secret; writing ${sealed:ID} back keeps that secret, at any place of the same
// resource, so that a new secret may be put in front of an old one. A new
// literal gets a new ID, unless it equals a sealed one of the resource: writing
// a document twice changes nothing. References such as ${env:NAME} read as they
// were written. A secret that a write leaves out is gone; a patch that does not
// mention it keeps it. Literal secrets of the configuration file read as ***,
// which no write accepts.
package adminapi
