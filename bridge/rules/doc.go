// Package rules keeps the live catalog: the resources of the configuration file
// and those that the admin API stored in Queen's KV, as one configuration that
// is replaced as a whole. What a resource means it leaves to package bridge,
// who may change one to package admin, and acting on the catalog to its
// subscribers.
//
// A resource has one owner: a name that the file has is the file's. A stored
// resource that cannot be used (a reference that does not resolve, a target
// that is gone, fields of a newer version) is left out and reported, and never
// keeps another one from being used. Queen paused or away changes nothing: the
// last good catalog stays, and at a start the file's resources work until the
// stored ones can be read.
//
// # How it is stored
//
// One KV row for each resource, without an expiry, in the namespace and under
// the key that package bridge names; its version is the resource's. The
// document stands in it as text, because Queen re-encodes JSON. Every change
// also writes one row that all of them share, the generation, with the version
// that the change was checked against: two replicas cannot both make a change
// that would be refused after the other's, such as deleting a target while a
// route to it is made. It also makes polling cheap: an unchanged generation
// means unchanged rows.
//
// # Secrets
//
// Literal secrets are sealed with AES-256-GCM under the first key of a
// [Keyring] and bound to their resource. References such as ${env:NAME} are
// stored as written; each process resolves them for itself.
package rules
