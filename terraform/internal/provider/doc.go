// Package provider is the Terraform provider of Queen Bridge: sources, targets,
// routes and queues as resources and data sources, written over the admin API.
// What a resource means it leaves to the bridge, and the way between
// Terraform's values and documents to package shape.
//
// # One engine
//
// The four resources differ only in their fields. Each has a file of its own,
// which says what it is; [managed] does what all of them do.
//
// # What is written, and what is kept
//
// A resource is made with a PUT that demands that there is none. It is changed
// with a merge patch of exactly what differs, at the version that was read last:
// fields that this provider does not know, because a newer bridge has them, stay
// as they are, and a change of somebody else's is an error that says what
// changed, never overwritten.
//
// # Secrets
//
// The bridge never returns a secret: a literal one reads as ${sealed:ID}. The
// state keeps what was configured as long as the IDs, kept in the private state,
// are those of the last write; with another ID the secret was changed elsewhere,
// and the ID itself is shown as the difference. A write-only secret is in no
// state; where it was changed elsewhere, its version reads as null, and so the
// next apply writes it again.
package provider
