package admin

import (
	"context"
	"net/http"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/bridge/rules"
)

// Pauses stop and start routes and targets, in every process and beside their
// documents, so that those of the configuration file can be paused, too. Its
// methods may be called at once, and talk to Queen.
type Pauses interface {
	Pause(ctx context.Context, r bridge.Resource, p adminapi.Pause) error
	Resume(ctx context.Context, r bridge.Resource) error
	// Paused is all that is paused.
	Paused(ctx context.Context) (map[bridge.Resource]adminapi.Pause, error)
}

func (s *Server) pause(q *request) (answer, error) {
	reason := q.body.Member("reason")
	for _, m := range q.body.Members {
		if m.Key != "reason" {
			return answer{}, unknownField(m.Key)
		}
	}
	if q.body.Kind != bridge.NodeAbsent && (q.body.Kind != bridge.NodeMap || reason.Kind != bridge.NodeAbsent && reason.Kind != bridge.NodeString) {
		return answer{}, problem(adminapi.CodeMalformed, `the body must be {"reason": "text"}, or none`)
	}
	return s.setPaused(q, func(r bridge.Resource) error {
		return s.config.Pauses.Pause(q.Context(), r, adminapi.Pause{Reason: reason.Text, By: q.who.name})
	}, true)
}

func unknownField(name string) error {
	return &adminapi.Error{Code: adminapi.CodeInvalid, Detail: "problems of the body",
		Problems: []adminapi.Problem{{Path: clip(name), Text: "is unknown"}}}
}

func (s *Server) resume(q *request) (answer, error) {
	return s.setPaused(q, func(r bridge.Resource) error { return s.config.Pauses.Resume(q.Context(), r) }, false)
}

// setPaused pauses or resumes: a source by its field, the others by what act
// does. Resuming takes the field of a stored one back, too.
func (s *Server) setPaused(q *request, act func(bridge.Resource) error, paused bool) (answer, error) {
	r := q.resource()
	s.rules.Sync(q.Context())
	e, ok := s.rules.Catalog().Entry(r)
	if !ok {
		return answer{}, rules.ErrNotFound
	}
	if r.Kind == bridge.KindSource || !paused && e.Document.Member("paused").Text == "true" {
		if err := s.writePaused(q, paused); err != nil {
			return answer{}, err
		}
	}
	if r.Kind != bridge.KindSource {
		if s.config.Pauses == nil {
			return answer{}, problem(adminapi.CodeNotServed, "this process cannot pause or resume")
		}
		if err := act(r); err != nil {
			return answer{}, err
		}
		s.record(q, change{action: map[bool]string{true: "paused", false: "resumed"}[paused], before: version(e.Version)})
	}
	e, ok = s.rules.Catalog().Entry(r)
	if !ok {
		return answer{}, rules.ErrNotFound
	}
	return s.one(q, http.StatusOK, e), nil
}

// writePaused changes the field of a stored resource.
func (s *Server) writePaused(q *request, paused bool) error {
	value := bridge.Node{Kind: bridge.NodeBool, Text: map[bool]string{true: "true", false: "false"}[paused]}
	doc := bridge.Node{Kind: bridge.NodeMap, Members: []bridge.Member{{Key: "paused", Value: value}}}
	out, err := s.rules.Write(q.Context(), rules.Write{Resource: q.resource(), Document: doc, Patch: true, By: q.who.name})
	if err == nil && out.Changed {
		s.record(q, change{action: "changed", before: version(out.Before), after: version(out.Entry.Version), fields: out.Fields})
	}
	return err
}

// pausedNow is why a resource is paused beside its document. One look serves a
// whole request.
func (s *Server) pausedNow(q *request, r bridge.Resource) *adminapi.Pause {
	if s.config.Pauses == nil || r.Kind != bridge.KindRoute && r.Kind != bridge.KindTarget {
		return nil
	}
	if q.paused == nil {
		q.paused = map[bridge.Resource]adminapi.Pause{}
		if all, err := s.config.Pauses.Paused(q.Context()); err == nil { // else it is not shown
			q.paused = all
		}
	}
	if p, ok := q.paused[r]; ok {
		return &p
	}
	return nil
}
