package configfile

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/queenbridge/queenbridge/bridge"
)

// resolver resolves the references in the strings of a document.
type resolver struct {
	dir     string   // relative paths start here
	files   []string // those that references named
	further map[string]Lookup
}

// Lookup finds the value of a reference whose kind this package does not know,
// by what stands after the colon. Its error is shown to the operator: it says
// what to do, and holds nothing of a value.
type Lookup func(name string) (string, error)

// NewResolver resolves the references in the text of one node, as Load does
// those of a file in dir. See Options.References for further.
func NewResolver(dir string, further map[string]Lookup) func(*bridge.Node) {
	r := resolver{dir: dir, further: further}
	return func(n *bridge.Node) {
		r.resolve(n)
		r.files = nil // nobody asks
	}
}

// resolve replaces every reference below n by what it stands for. One that
// cannot be resolved leaves the reason in its node.
func (r *resolver) resolve(n *bridge.Node) {
	n.Walk("", func(_ string, n *bridge.Node) {
		if n.Kind != bridge.NodeString || !strings.Contains(n.Text, "${") {
			return
		}
		written := n.Text
		text, referred, err := r.expand(written)
		switch {
		case err != nil:
			n.Err = err.Error()
		case referred:
			n.Text, n.Reference = text, written
		default:
			n.Text = text
		}
	})
}

// expand resolves the references in text; referred says that there was one.
func (r *resolver) expand(text string) (expanded string, referred bool, err error) {
	return expand(text, r.lookUp)
}

// ReferredFiles are the files that the references in a document name, relative
// ones in dir. None is read.
func ReferredFiles(dir string, doc bridge.Node) []string {
	var files []string
	note := func(reference string) (string, error) {
		if name, isFile := strings.CutPrefix(reference, "file:"); isFile && name != "" {
			files = append(files, inDir(dir, name))
		}
		return "", nil
	}
	doc.Walk("", func(_ string, n *bridge.Node) {
		if n.Kind == bridge.NodeString && strings.Contains(n.Text, "${file:") {
			_, _, _ = expand(n.Text, note) // what cannot be read names none
		}
	})
	return files
}

func inDir(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func expand(text string, lookUp func(reference string) (string, error)) (expanded string, referred bool, err error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		if !found {
			out.WriteString(text)
			return out.String(), referred, nil
		}
		if escaped, ok := strings.CutSuffix(before, "$"); ok {
			out.WriteString(escaped + "${")
			text = rest
			continue
		}
		reference, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", false, fmt.Errorf("has a ${ without }: %s", literalHint)
		}
		value, err := lookUp(reference)
		if err != nil {
			return "", false, err
		}
		out.WriteString(before + value)
		text, referred = after, true
	}
}

const literalHint = "a literal ${ is written $${"

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// lookUp resolves what stands between ${ and }.
func (r *resolver) lookUp(reference string) (string, error) {
	kind, name, _ := strings.Cut(reference, ":")
	switch kind {
	case "env":
		if !variableName.MatchString(name) {
			return "", fmt.Errorf("${%s} names no environment variable: write ${env:NAME}", reference)
		}
		value, set := os.LookupEnv(name)
		if !set {
			return "", fmt.Errorf("environment variable %s is not set", name)
		}
		return value, nil
	case "file":
		return r.readSecret(name)
	}
	if find := r.further[kind]; find != nil {
		return find(name)
	}
	return "", fmt.Errorf("${%s} is no reference: use %s; %s", reference, r.kinds(), literalHint)
}

// kinds lists what a reference may be.
func (r *resolver) kinds() string {
	kinds := []string{"${env:NAME}", "${file:PATH}"}
	for _, kind := range slices.Sorted(maps.Keys(r.further)) {
		kinds = append(kinds, "${"+kind+":…}")
	}
	last := len(kinds) - 1
	return strings.Join(kinds[:last], ", ") + " or " + kinds[last]
}

// readSecret reads the file of a reference. Editors and echo end a file with a
// newline that is no part of a secret, so one is dropped.
func (r *resolver) readSecret(path string) (string, error) {
	if path == "" {
		return "", fmt.Errorf("${file:} names no file: write ${file:PATH}")
	}
	path = inDir(r.dir, path)
	r.files = append(r.files, path)
	data, err := readAtMost(path, maxSecret)
	if err != nil {
		return "", fmt.Errorf("cannot read the file of a reference: %w", err)
	}
	text := strings.TrimSuffix(string(data), "\n")
	if len(text) < len(data) {
		text = strings.TrimSuffix(text, "\r")
	}
	return text, nil
}
