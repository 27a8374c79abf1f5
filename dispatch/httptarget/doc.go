// Package httptarget calls functions over HTTP: one request per attempt, with
// the event's exact body and headers, an identity that stays the same over all
// attempts, and a signature made anew for each. What becomes of an answer, and
// when to call again, is left to package dispatch.
//
// Redirects are answers, proxies of the environment are ignored, and the
// address that is really dialled is checked after DNS.
package httptarget
