// Package bridge has the nouns of Queen Bridge and its pure rules: the
// configuration with its defaults and checks, the event and the envelope as
// they travel through Queen, the names of queues and ids, and the decision
// about one attempt. It starts nothing and talks to nobody: receiving is
// package ingress, calling is package dispatch, files are package configfile,
// and proving who sent a request is package signing.
//
// A webhook becomes an [Event], which a [Source] puts into a queue by
// [Event.AppendPayload]. A [Route] makes of each event in its queue a
// [Delivery] to a [Target]; every attempt has a [Response], which [Decide]
// turns into an [Outcome]. A delivery that is tried again or is dead travels
// on as an envelope ([Delivery.AppendEnvelope]).
//
// A configuration comes in as a [Node], whatever it was written in:
//
//	c, problems := bridge.Decode(doc)  // form, with defaults
//	problems = c.Check(problems)       // and meaning
//
// # Promises
//
//  1. An event answered 2xx is in Queen (or in the fsynced spool, where one is
//     configured) and is delivered at least once.
//  2. The function sees the exact body bytes and the headers the provider sent
//     (credential and hop-by-hop headers excepted).
//  3. A redelivery by the provider inside the dedup window is stored once. A
//     delivery keeps one stable id over all attempts.
//  4. A failing or slow target slows only its own routes; a failing or slow
//     event never blocks other partitions, and with ordering none not even its
//     own.
//  5. Attempts, retry times and dead letters survive the death of every
//     process. No ack without its retry, and no retry without its ack: they
//     are one Queen transaction (two steps, the ack last, only for events so
//     old that the broker has forgotten their ids).
//  6. Secrets, bodies and computed signatures are never logged.
package bridge
