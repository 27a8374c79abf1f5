package configfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/queenbridge/queenbridge/bridge"
)

// DefaultPath is the file read when nothing names one.
const DefaultPath = "bridge.yaml"

// maxFile bounds a configuration file, and maxSecret a file that is referred
// to: larger ones are the wrong file.
const (
	maxFile   = 4 << 20
	maxSecret = 1 << 20
)

// Options say what to load.
type Options struct {
	// Path of the file. Empty means QUEENBRIDGE_CONFIG, else DefaultPath.
	Path string
	// Data is the document itself: no file is read, and Path only names it.
	// Nil means the file.
	Data []byte
	// Flags lays what the command line gave over the configuration, before it
	// is checked. Nil means nothing.
	Flags func(*bridge.Config)
	// References find what this package cannot: aws-ssm resolves ${aws-ssm:…}.
	// Nil means that there are only ${env:…} and ${file:…}.
	References map[string]Lookup
}

// Result is a configuration that may be used.
type Result struct {
	Config bridge.Config
	// Path is the file it came from.
	Path string
	// Warnings do not stop the bridge.
	Warnings []Problem
	// EncryptionKeys are those of QUEENBRIDGE_ENCRYPTION_KEY, newest first, of
	// 32 bytes each; none where it is not set.
	EncryptionKeys [][]byte

	doc bridge.Node
	// files are those that references name.
	files []string
	// before is the configuration before the flags.
	before bridge.Node
}

// Load reads a configuration: the file, over it the variables of the process's
// environment (QUEENBRIDGE_QUEEN_URLS and so on; an empty one counts as not
// set), over these the flags. Where a higher layer says where Queen is
// (queen.urls or queen.embedded), a lower layer's word on the other is
// dropped.
//
// Strings of the file may hold references: ${env:NAME}, and ${file:PATH},
// relative to the file; one newline at the end of what PATH holds is dropped;
// and those of Options.References. Each Load resolves them anew. $${ stands for ${ itself.
//
// The error is an *Error that lists every problem, or says why the file cannot
// be read; the Result then has nothing but the Path and the Files.
func Load(o Options) (Result, error) {
	env, err := readEnvironment()
	if err != nil {
		return Result{}, err
	}
	r := Result{Path: firstOf(o.Path, env.Config.text, DefaultPath)}
	data := o.Data
	if data == nil {
		if data, err = readFile(r.Path); err != nil {
			return Result{Path: r.Path}, err
		}
	}
	doc, err := parse(data)
	if err != nil {
		return Result{Path: r.Path}, syntaxError(r.Path, err)
	}
	references := resolver{dir: filepath.Dir(r.Path), further: o.References}
	references.resolve(&doc)
	r.files = references.files
	env.layOver(&doc)
	r.doc = doc
	return r.check(env, o.Flags)
}

// Written is the text at a path of the document as it was written, where it
// holds a reference (${env:GITHUB_SECRET}); "" where it does not.
func (r Result) Written(path string) string {
	n, _ := r.doc.At(path)
	return n.Reference
}

// Document is the document that the configuration was read from, its references
// resolved: it holds secrets. See bridge.Masked.
func (r Result) Document() bridge.Node { return r.doc.Clone() }

// Files are the files the configuration was made of: its own and those that
// references name, whether they can be read or not. A Result of a failed Load
// has as many of them as were seen.
func (r Result) Files() []string {
	if r.Path == "" {
		return nil
	}
	return append([]string{r.Path}, r.files...)
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// check reads the document, lays the flags over it and checks the whole.
func (r Result) check(env environment, flags func(*bridge.Config)) (Result, error) {
	c, found := bridge.Decode(r.doc)
	c.Admin.EnvToken = bridge.Secret(env.AdminToken.text)
	r.before = c.Effective()
	if flags != nil {
		flags(&c)
	}
	r.Config = c
	report := reporter{file: r.Path, doc: r.doc, before: r.before, after: c.Effective()}
	problems := report.locate(append(c.Check(found), r.checkFilters(c.Routes)...))
	keys, err := env.keys()
	if err != nil {
		problems = append(problems, Problem{Where: envPrefix + "_ENCRYPTION_KEY", Problem: bridge.Problem{Text: err.Error()}})
	}
	r.EncryptionKeys = keys
	failed, warnings := split(problems)
	r.Warnings = warnings
	if len(failed) > 0 {
		return Result{Path: r.Path, files: r.files}, &Error{Problems: failed, Warnings: warnings}
	}
	return r, nil
}

func readFile(path string) ([]byte, error) {
	data, err := readAtMost(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read configuration: %s: %w: name the file with --config or QUEENBRIDGE_CONFIG, "+
			"or run \"queenbridge dev\" to try without one", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return data, nil
}

// readAtMost reads a file of at most limit bytes.
func readAtMost(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s is larger than %s", path, bridge.Size(limit))
	}
	return data, err
}

// ReadDocument reads a file as it is written: references stay, and nothing of
// the environment is laid over it. See bridge.Decode for what it means.
func ReadDocument(path string) (bridge.Node, error) {
	data, err := readFile(path)
	if err != nil {
		return bridge.Node{}, err
	}
	return ParseDocument(path, data)
}

// ParseDocument is ReadDocument of a text; path only names it.
func ParseDocument(path string, data []byte) (bridge.Node, error) {
	doc, err := parse(data)
	if err != nil {
		return bridge.Node{}, syntaxError(path, err)
	}
	return doc, nil
}
