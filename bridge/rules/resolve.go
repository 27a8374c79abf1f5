package rules

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// resolve replaces, in a document, references by what they stand for: sealed
// secrets by the keyring, the others by the process's own resolver. What cannot
// be resolved has the reason in its node.
func (s *Store) resolve(of bridge.Resource, doc *bridge.Node, sealed map[string]string) {
	opened := map[*bridge.Node]bool{}
	bridge.VisitCredentials(of.Kind, doc, func(_ string, n *bridge.Node) {
		id, isSealed := sealedID(n.Text)
		if !isSealed {
			return
		}
		opened[n] = true
		n.Reference = n.Text
		stored, known := sealed[id]
		if !known {
			n.Err = "refers to a sealed secret that this resource does not have: write the secret, or a reference such as ${env:NAME}"
			return
		}
		text, err := s.keys.open(of, id, stored)
		if err != nil {
			n.Err = err.Error()
			return
		}
		n.Text = text
	})
	doc.Walk("", func(_ string, n *bridge.Node) {
		if n.Kind == bridge.NodeString && !opened[n] && strings.Contains(n.Text, "${") {
			s.resolveText(n)
		}
	})
}

// ownVariables are the process's own credentials: a resource that could name
// them could hand them to any target.
var ownVariables = []string{"QUEENBRIDGE_ENCRYPTION_KEY", "QUEENBRIDGE_ADMIN_TOKEN", "QUEENBRIDGE_QUEEN_TOKEN", "QUEENBRIDGE_TOKEN"}

func (s *Store) resolveText(n *bridge.Node) {
	for _, name := range ownVariables {
		if strings.Contains(n.Text, "${env:"+name+"}") {
			n.Err = "may not refer to " + name + ": it is the bridge's own"
			return
		}
	}
	if strangeFile(n.Text) {
		n.Err = "may not refer to a file of /proc, /dev or /sys, nor to one by ..: they hold the bridge's own credentials"
		return
	}
	s.references.resolve(n)
}

// strangeFile says that a text refers to a file that is none, such as
// /proc/self/environ, where ownVariables stand, too.
func strangeFile(text string) bool {
	for _, part := range strings.Split(text, "${file:")[1:] {
		name, _, _ := strings.Cut(part, "}")
		for _, root := range []string{"/proc", "/dev", "/sys"} {
			if strings.HasPrefix(path.Clean(name)+"/", root+"/") {
				return true
			}
		}
		if slices.Contains(strings.Split(name, "/"), "..") {
			return true
		}
	}
	return false
}

// failedFor is how long a reference that could not be resolved is not tried
// again: every change would wait for it.
const failedFor = 10 * time.Second

// references remember what texts stand for, until the file is loaded anew.
type references struct {
	look  func(*bridge.Node)
	known map[string]reference
}

type reference struct {
	node bridge.Node
	at   time.Time
}

func newReferences(look func(*bridge.Node)) *references {
	return &references{look: look, known: map[string]reference{}}
}

func (r *references) resolve(n *bridge.Node) {
	written := n.Text
	known, ok := r.known[written]
	if !ok || known.node.Err != "" && time.Since(known.at) > failedFor {
		known = reference{bridge.Node{Kind: n.Kind, Text: written}, time.Now()}
		r.look(&known.node)
		r.known[written] = known
	}
	n.Text, n.Reference, n.Err = known.node.Text, known.node.Reference, known.node.Err
}

// scrub takes what references and secrets stand for out of a problem's text:
// some problems show the value.
func scrub(text string, resolved bridge.Node, kind bridge.Kind) string {
	hide := func(value, shown string) {
		const shortest = 3 // shorter ones would take letters out of words
		if len(value) < shortest {
			return
		}
		text = strings.ReplaceAll(text, value, shown)
		if q := strconv.Quote(value); q != `"`+value+`"` {
			text = strings.ReplaceAll(text, q, shown)
		}
	}
	resolved.Walk("", func(_ string, n *bridge.Node) {
		if n.Reference != "" && n.Err == "" {
			hide(n.Text, n.Reference)
		}
	})
	bridge.VisitCredentials(kind, &resolved, func(_ string, n *bridge.Node) {
		if n.Reference == "" {
			hide(n.Text, bridge.Hidden)
		}
	})
	return text
}
