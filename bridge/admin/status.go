package admin

import (
	"net/http"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/bridge/rules"
)

func (s *Server) status(q *request) (answer, error) {
	status := s.config.Status(q.Context())
	c := s.rules.Catalog()
	status.Rules = adminapi.Rules{Generation: version(c.Generation), Synced: s.rules.LastRead().UTC(), Counts: map[string]int{},
		Invalid: names(c.Invalid()), Draining: names(c.Draining())}
	for _, kind := range bridge.Kinds() {
		for _, e := range c.Entries(kind) {
			if e.InUse {
				status.Rules.Counts[string(kind)]++
			}
		}
	}
	status.Problems = append([]string{}, status.Problems...)
	status.Parts = append([]string{}, status.Parts...)
	status.Routes = append([]adminapi.RouteStatus{}, status.Routes...)
	status.Targets = append([]adminapi.TargetStatus{}, status.Targets...)
	return answer{status: http.StatusOK, body: status}, nil
}

func names(list []bridge.Resource) []string {
	out := make([]string, len(list))
	for i, r := range list {
		out[i] = r.String()
	}
	return out
}

func (s *Server) schemes(*request) (answer, error) {
	return answer{status: http.StatusOK, body: adminapi.SchemeList{Items: append([]adminapi.Scheme{}, s.config.Schemes...)}}, nil
}

func (s *Server) reseal(q *request) (answer, error) {
	out, err := s.rules.Reseal(q.Context(), q.who.name)
	for _, r := range out.Changed {
		s.record(q, change{action: "resealed", resource: r})
	}
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: resealed(out)}, nil
}

func resealed(out rules.Resealed) adminapi.Resealed {
	return adminapi.Resealed{Resources: names(out.Changed), Current: out.Current}
}
