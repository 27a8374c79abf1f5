package filter

import (
	"errors"
	"fmt"

	"github.com/queenbridge/queenbridge/bridge"
)

// Check lists what does not compile of the filters, patterns and transforms of
// routes, each at its path (routes[2].filter, routes[2].pattern.body.ref).
func Check(routes []bridge.Route) []bridge.Problem {
	var found []bridge.Problem
	for i, r := range routes {
		at := fmt.Sprintf("routes[%d].", i)
		if r.Filter != "" {
			_, err := Compile(r.Filter)
			found = appendProblems(found, at+"filter", err)
		}
		if _, isMap := r.Pattern.(map[string]any); isMap { // what else it may be is said by Config.Check
			_, err := CompilePattern(r.Pattern)
			found = appendProblems(found, at+"pattern", err)
		}
		_, problems := compileTransform(r.Transform) // the names of headers: Config.Check
		for _, p := range problems {
			found = append(found, bridge.Problem{Path: join(at+"transform", p.Path), Text: p.Text})
		}
	}
	return found
}

// appendProblems lists what an error of a compilation says, below a path.
func appendProblems(found []bridge.Problem, at string, err error) []bridge.Problem {
	var expression *CompileError
	var pattern *PatternError
	switch {
	case errors.As(err, &expression):
		for _, p := range expression.Problems {
			found = append(found, bridge.Problem{Path: at, Text: p.String()})
		}
	case errors.As(err, &pattern):
		for _, p := range pattern.Problems {
			found = append(found, bridge.Problem{Path: join(at, p.Path), Text: p.Text})
		}
	case err != nil:
		found = append(found, bridge.Problem{Path: at, Text: err.Error()})
	}
	return found
}
