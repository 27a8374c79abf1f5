package configfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/queenbridge/queenbridge/bridge"
)

// Problem is one thing wrong with a configuration, and where it was written.
type Problem struct {
	bridge.Problem
	// Where is the file, an environment variable or "command line".
	Where string
	// Line in the file, from 1; 0 where there is none.
	Line int

	column int
}

// String is bridge.yaml:14: routes[2].retry.max_attempts: must be 1 or more,
// got 0.
func (p Problem) String() string {
	parts := []string{p.Where, p.Path, p.Text}
	if p.Line > 0 {
		parts[0] = fmt.Sprintf("%s:%d", p.Where, p.Line)
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, ": ")
}

// Error lists every problem of a configuration; its text has one line for each,
// in the order of the file.
type Error struct {
	Problems []Problem
	// Warnings were found beside them.
	Warnings []Problem
}

func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// reporter finds where problems were written.
type reporter struct {
	file string
	doc  bridge.Node
	// before and after the flags: what differs came from the command line.
	before, after bridge.Node
}

// locate sorts problems by line; what stands in no line comes last.
func (r reporter) locate(problems []bridge.Problem) []Problem {
	located := make([]Problem, len(problems))
	for i, p := range problems {
		located[i] = r.place(p)
	}
	slices.SortStableFunc(located, func(a, b Problem) int {
		if (a.Line == 0) != (b.Line == 0) {
			return cmp.Compare(b.Line, a.Line)
		}
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.column, b.column))
	})
	return located
}

func (r reporter) place(p bridge.Problem) Problem {
	node, _ := r.doc.At(p.Path)
	switch {
	case r.byFlag(p.Path):
		return Problem{Problem: p, Where: "command line"}
	case node.Origin != "":
		return Problem{Problem: p, Where: node.Origin}
	}
	return Problem{Problem: p, Where: r.file, Line: cmp.Or(p.Line, node.Line), column: node.Column}
}

// byFlag says that the flags changed the value at path.
func (r reporter) byFlag(path string) bool {
	before, _ := r.before.At(path)
	after, found := r.after.At(path)
	return found && before.Text != after.Text
}

// split parts warnings from what stops the bridge.
func split(problems []Problem) (failed, warnings []Problem) {
	for _, p := range problems {
		if p.Warning {
			warnings = append(warnings, p)
		} else {
			failed = append(failed, p)
		}
	}
	return failed, warnings
}
