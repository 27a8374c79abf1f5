package rules

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/queenbridge/queenbridge/bridge"
)

// sealAll seals the literal secrets of a document and leaves references to them
// in their place. A literal that equals a sealed one becomes a reference to it.
func (s *Store) sealAll(of bridge.Resource, doc *bridge.Node, before map[string]string) (map[string]string, []bridge.Problem) {
	sealed := map[string]string{}
	var problems []bridge.Problem
	bridge.VisitCredentials(of.Kind, doc, func(path string, n *bridge.Node) {
		if text := s.sealOne(of, n, before, sealed); text != "" {
			problems = append(problems, bridge.Problem{Path: path, Text: text})
		}
	})
	return sealed, problems
}

// sealOne seals one secret; it returns what is wrong with it.
func (s *Store) sealOne(of bridge.Resource, n *bridge.Node, before, sealed map[string]string) string {
	if id, ok := sealedID(n.Text); ok {
		if stored, known := before[id]; known {
			sealed[id] = stored
		}
		return "" // resolving reports an unknown one
	}
	if n.Text == "" {
		return ""
	}
	if n.Text == bridge.Hidden {
		return "*** stands for a secret that is not shown: write the secret, or a reference such as ${env:NAME}"
	}
	literal := *n
	if strings.Contains(n.Text, "${") {
		s.resolveText(&literal)
	}
	if literal.Reference != "" || literal.Err != "" {
		return "" // stored as written
	}
	if id, ok := s.sealedAs(of, literal.Text, before); ok {
		sealed[id], n.Text = before[id], sealedReference(id)
		return ""
	}
	id := newSealedID()
	data, err := s.keys.seal(of, id, literal.Text)
	if errors.Is(err, ErrNoKey) {
		return "is a literal secret, and QUEENBRIDGE_ENCRYPTION_KEY is not set to seal it: set it (openssl rand -base64 32), or write ${env:NAME} or ${file:PATH}"
	}
	if err != nil {
		return err.Error()
	}
	sealed[id], n.Text = data, sealedReference(id)
	return ""
}

// sealedAs finds the sealed secret that equals a text.
func (s *Store) sealedAs(of bridge.Resource, text string, sealed map[string]string) (string, bool) {
	for _, id := range slices.Sorted(maps.Keys(sealed)) {
		if opened, err := s.keys.open(of, id, sealed[id]); err == nil && opened == text {
			return id, true
		}
	}
	return "", false
}
