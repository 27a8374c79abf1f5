package signing

import (
	"fmt"
	"strings"
)

// maxSignatures bounds the signatures of one request, so that a header of
// ten thousand costs nothing.
const maxSignatures = 16

// candidate is one received signature with its tag ("" where the format has
// none).
type candidate struct{ tag, text string }

// candidates are what the signature fields of one request say.
type candidates struct {
	list [maxSignatures]candidate
	n    int
	// stamp is the timestamp inside the fields.
	stamp   string
	stamped bool
}

func (c *candidates) all() []candidate { return c.list[:c.n] }

func (c *candidates) add(tag, text string) *Rejection {
	if c.n == maxSignatures {
		return reject(ReasonTooManySignatures, "more than %d", maxSignatures)
	}
	c.list[c.n] = candidate{tag: tag, text: text}
	c.n++
	return nil
}

// setStamp takes the timestamp of a field; a second, different one makes the
// signed text a matter of choice, so it is refused.
func (c *candidates) setStamp(text string) *Rejection {
	if c.stamped && c.stamp != text {
		return reject(ReasonMalformedTimestamp, "two different timestamps in the signature")
	}
	c.stamp, c.stamped = text, true
	return nil
}

func reject(reason Reason, detail string, args ...any) *Rejection {
	return &Rejection{Reason: reason, Detail: fmt.Sprintf(detail, args...)}
}

// parse collects the signatures in value. Entries that do not fit are
// skipped, not fatal: providers add new versions beside the old ones.
func (g *grammar) parse(value string, accepts func(tag string) bool, c *candidates) *Rejection {
	switch g.format {
	case formatPairs:
		return g.parsePairs(value, accepts, c)
	case formatGroups:
		for group := range strings.SplitSeq(value, " ") {
			if rej := g.parsePairs(group, accepts, c); rej != nil {
				return rej
			}
		}
		return nil
	case formatTags:
		return g.parseTags(value, accepts, c)
	case formatList:
		return g.parseList(value, c)
	case formatPositional:
		stamp, rest, _ := strings.Cut(value, g.delimiter)
		if rej := c.setStamp(stamp); rej != nil {
			return rej
		}
		return g.parseList(rest, c)
	}
	if text, ok := strings.CutPrefix(value, g.prefix); ok && text != "" {
		return c.add("", text)
	}
	return nil
}

// parsePairs reads k=v,k=v. White space around keys is dropped ("t=1, v1=a"
// is common), never around values.
func (g *grammar) parsePairs(value string, accepts func(string) bool, c *candidates) *Rejection {
	for entry := range strings.SplitSeq(value, g.delimiter) {
		k, v, ok := strings.Cut(entry, "=")
		if k = strings.TrimSpace(k); !ok || k == "" {
			continue
		}
		var rej *Rejection
		switch {
		case k == g.stampKey:
			rej = c.setStamp(v)
		case accepts(k) && v != "":
			rej = c.add(k, v)
		}
		if rej != nil {
			return rej
		}
	}
	return nil
}

// parseTags reads tag,value tag,value.
func (g *grammar) parseTags(value string, accepts func(string) bool, c *candidates) *Rejection {
	for entry := range strings.SplitSeq(value, " ") {
		tag, text, ok := strings.Cut(entry, g.delimiter)
		if !ok || text == "" || !accepts(tag) {
			continue
		}
		if rej := c.add(tag, text); rej != nil {
			return rej
		}
	}
	return nil
}

func (g *grammar) parseList(value string, c *candidates) *Rejection {
	for entry := range strings.SplitSeq(value, g.delimiter) {
		text, ok := strings.CutPrefix(trimOWS(entry), g.prefix)
		if !ok || text == "" {
			continue
		}
		if rej := c.add("", text); rej != nil {
			return rej
		}
	}
	return nil
}

// write is the inverse of parse for one signature.
func (g *grammar) write(tag, stamp, signature string) string {
	switch g.format {
	case formatPairs, formatGroups:
		if g.stampKey == "" {
			return tag + "=" + signature
		}
		return g.stampKey + "=" + stamp + g.delimiter + tag + "=" + signature
	case formatTags:
		return tag + g.delimiter + signature
	case formatPositional:
		return stamp + g.delimiter + signature
	}
	return g.prefix + signature
}
