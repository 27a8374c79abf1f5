// Package admin serves the admin API: it reads requests, proves who asks and
// what they may do, and answers in the words of package adminapi. What a change
// means and where it is stored it leaves to package rules; what only a running
// dispatcher can do, to the interfaces of [Config].
//
// # Who may do what
//
// Every request below /v1 carries a bearer token, and the token has a role:
// a viewer reads; an operator also pauses, resumes, fires tests and redrives; an
// admin also changes resources. A bridge without any token serves only on
// loopback, where whoever reaches it is an admin.
//
// # Paths
//
//	GET    /v1/{kind}                     list; page_size, page_token
//	GET    /v1/{kind}/{name}              one, with its ETag
//	PUT    /v1/{kind}/{name}              make it so; If-Match, If-None-Match: *, ?validate_only=true
//	PATCH  /v1/{kind}/{name}              JSON merge patch (RFC 7396)
//	DELETE /v1/{kind}/{name}              204, or 202 for a route that drains
//	POST   /v1/{kind}/{name}/pause        and /resume: sources, targets, routes
//	POST   /v1/routes/{name}/test         call its target with a test event
//	GET    /v1/routes/{name}/dead-letters             and /{id}
//	POST   /v1/routes/{name}/dead-letters/redrive     and /delete: those that fit the body
//	DELETE /v1/routes/{name}/dead-letters/{id}
//	GET    /v1/routes/{name}/retries      and POST /{key}/now
//	POST   /v1/routes/{name}/replay       deliver again what was pushed since a time
//	GET    /v1/deliveries                 recent attempts of the process that answers, from its memory
//	GET    /v1/status  /v1/schemes  /v1/openapi.json
//	POST   /v1/reseal                     seal secrets under the newest key
//
// A kind is sources, targets, routes or queues. Actions are sub-resources
// (/pause), not suffixes (:pause), so that a name may hold any character.
//
// # Promises
//
//  1. No answer and no record of the log holds a secret.
//  2. An error lists everything that is wrong, each with its path.
//  3. Every change is recorded: who, what, from which version to which.
//  4. What a browser sends for another site is refused; nothing is allowed to
//     other origins.
package admin
