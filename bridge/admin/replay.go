package admin

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
)

func (s *Server) replayEndpoint() endpoint {
	return endpoint{method: "POST", path: "/v1/routes/{name}/replay", role: bridge.RoleOperator, id: "replay_route", summary: "Deliver again what was pushed since a time",
		text: "Pause the route, replay it, resume it: refused with 409 while it is not paused, or events of it are under way (calls are waited for, up to 10 seconds). " +
			"What the queue still holds from then on comes again, in order, to this route alone; with its first `webhook-id`, so that a function which knows what it has done does it once. " +
			"Retries that wait, and dead letters, stay. A partition that is further behind already stays where it is. Repeating it does no harm.",
		body: adminapi.Replay{}, answers: map[int]any{200: adminapi.ReplayResult{}},
		errors: []adminapi.Code{adminapi.CodeInvalid, adminapi.CodeConflict, adminapi.CodeNotFound}, serve: s.replay}
}

func (s *Server) replay(q *request) (answer, error) {
	var order adminapi.Replay
	if err := q.decode(&order); err != nil {
		return answer{}, err
	}
	since, wrong := replaySince(order.Since, time.Now())
	if wrong != "" {
		return answer{}, &adminapi.Error{Code: adminapi.CodeInvalid, Detail: "problems of the body", Problems: []adminapi.Problem{{Path: "since", Text: wrong}}}
	}
	if s.config.Letters == nil {
		return answer{}, errNotServed
	}
	result, err := s.config.Letters.Replay(q.Context(), q.vars["name"], since)
	if err != nil {
		return answer{}, err
	}
	s.log.LogAttrs(q.Context(), slog.LevelInfo, "order carried out by the admin API",
		slog.String("request", q.id), slog.String("by", q.who.name), slog.String("role", q.who.role), slog.String("from", q.RemoteAddr),
		slog.String("action", "route replayed"), slog.String("route", q.vars["name"]),
		slog.Time("since", since), slog.Int("partitions", result.Partitions), slog.Int("pending", result.Pending))
	return answer{status: http.StatusOK, body: result}, nil
}

// replaySince reads where a replay begins; zero is the beginning.
func replaySince(text string, now time.Time) (since time.Time, wrong string) {
	if text == adminapi.ReplayBeginning {
		return time.Time{}, ""
	}
	since, err := time.Parse(time.RFC3339, text)
	switch {
	case err != nil:
		return since, "must be an RFC 3339 time such as 2026-01-02T15:04:05Z, or beginning, got " + clip(text)
	case since.After(now):
		return since, "must not be in the future, got " + clip(text)
	}
	return since.UTC(), ""
}
