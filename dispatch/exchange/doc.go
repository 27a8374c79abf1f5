// Package exchange makes one HTTP request for a Sender and knows how far it
// got: whether the function may have seen something of it, in which phase it
// failed, and whether it may be made once more at once. What the request says,
// whom it may reach and what an answer means is left to the Senders.
package exchange
