package admin

import (
	"encoding/json"
	"net/http"
)

func (s *Server) serveOpenAPI(*request) (answer, error) {
	return answer{status: http.StatusOK, body: json.RawMessage(s.openAPI)}, nil
}

// document makes the OpenAPI document of the endpoints.
func (s *Server) document() ([]byte, error) { return []byte("{}\n"), nil }
