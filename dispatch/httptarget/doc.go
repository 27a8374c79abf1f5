// Package httptarget calls functions over HTTP: one request per attempt, with
// the event's exact body and headers, an identity that stays the same over all
// attempts, and a signature and credential made anew for each. What becomes of
// an answer, and when to call again, is left to package dispatch.
//
// Redirects are answers, proxies of the environment are ignored, and the
// address that is really dialled is checked after DNS. No connection is used
// for more than five minutes. Whatever a function sends, an attempt ends with
// its deadline and reads at most 64 KiB, or what was asked to be captured.
// Credentials, signatures and the URL's query are in no error, nor in the head
// of an answer that is kept for people to read.
package httptarget
