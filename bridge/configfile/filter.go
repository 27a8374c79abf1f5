package configfile

import (
	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/filter"
)

// checkFilters lists what does not compile of filters, patterns and transforms. A text that came from a
// reference is never shown, so it is not said what is wrong with it.
func (r Result) checkFilters(routes []bridge.Route) []bridge.Problem {
	problems := filter.Check(routes)
	for i := range problems {
		if node, _ := r.doc.At(problems[i].Path); node.Reference != "" {
			problems[i].Text = "does not compile with what the reference in it stands for"
		}
	}
	return problems
}
