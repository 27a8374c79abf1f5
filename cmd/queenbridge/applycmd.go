package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/bridge/configfile"
	"github.com/spf13/cobra"
)

// applied is what became of one resource. The JSON names are public.
type applied struct {
	Resource string   `json:"resource"`
	Action   string   `json:"action"` // created, changed, none; differs; deleted, draining
	Fields   []string `json:"fields"`
}

// applyOrder makes what others need first.
var applyOrder = []bridge.Kind{bridge.KindQueue, bridge.KindTarget, bridge.KindSource, bridge.KindRoute}

// applyCommand applies a file: its resources of one kind, or of all ("").
func (p *program) applyCommand(kind bridge.Kind) *cobra.Command {
	var path string
	var migrate, dry bool
	c := p.apiCommand(&cobra.Command{
		Use:   "apply -f FILE",
		Short: "Make " + orDefault(string(kind), "sources, targets, routes and queues") + " what a configuration file says",
		Long: "apply writes the resources of a configuration file (- is standard input) over the admin API. Its settings of the process\n" +
			"are passed over, references are stored as written, literal secrets sealed. Applying twice changes nothing.\n" +
			"Nothing is written while anything is wrong with the file: all of it is said first.\n" +
			"What the bridge's own configuration file has is refused; with --migrate it is stored beside it, and takes\n" +
			"over as soon as the file no longer has it: no webhook is refused in between.",
		Example: "  queenbridge apply -f bridge.yaml\n  queenbridge apply -f bridge.yaml --migrate",
	}, func(cmd *cobra.Command, client *adminapi.Client, asJSON bool, _ []string) error {
		resources, err := p.resourcesIn(path, kind)
		if err != nil {
			return err
		}
		return p.apply(cmd.Context(), client, resources, adminapi.WriteOptions{Stored: migrate, ValidateOnly: dry}, asJSON)
	})
	c.Flags().StringVarP(&path, "file", "f", "", "the file; - is standard input")
	if kind != "" {
		c.Long += fmt.Sprintf("\nWhat \"queenbridge %s get\" prints, of one or of all, is such a file, too.", kind)
	}
	c.Flags().BoolVar(&migrate, "migrate", false, "also store what the bridge's configuration file has")
	c.Flags().BoolVar(&dry, "dry-run", false, "only say what would change, and what is wrong")
	return c
}

// written is one resource of a file.
type written struct {
	bridge.Resource
	doc  bridge.Node
	file string // for messages
}

// resourcesIn reads the resources of a file, in the order in which they are
// made.
func (p *program) resourcesIn(path string, kind bridge.Kind) ([]written, error) {
	if path == "" {
		return nil, &usageError{err: errors.New("no file is named"), hint: "name it: -f bridge.yaml, or -f - for standard input"}
	}
	doc, err := p.readDocument(path)
	if err != nil {
		return nil, &usageError{err: err}
	}
	doc = wholeDocument(kind, doc)
	if path == "-" {
		path = "standard input"
	}
	if err := checkTop(path, doc); err != nil {
		return nil, err
	}
	var all []written
	for _, k := range applyOrder {
		if kind != "" && k != kind {
			continue
		}
		for i, item := range doc.Member(string(k)).Items {
			name := item.Member("name")
			if name.Kind != bridge.NodeString || name.Text == "" {
				return nil, &usageError{err: fmt.Errorf("%s:%d: %s[%d].name: is required", path, item.Line, k, i)}
			}
			all = append(all, written{bridge.Resource{Kind: k, Name: name.Text}, item, path})
		}
	}
	if len(all) == 0 {
		return nil, &usageError{err: fmt.Errorf("%s holds no %s", path, orDefault(string(kind), "resources"))}
	}
	return all, nil
}

// wholeDocument is a configuration of what "get" prints: one resource of a kind,
// or a list of them.
func wholeDocument(kind bridge.Kind, doc bridge.Node) bridge.Node {
	list := doc
	switch {
	case kind == "":
		return doc
	case doc.Kind == bridge.NodeMap && doc.Member("name").Kind == bridge.NodeString && doc.Member(string(kind)).Kind == bridge.NodeAbsent:
		list = bridge.Node{Kind: bridge.NodeList, Items: []bridge.Node{doc}, Line: doc.Line}
	case doc.Kind != bridge.NodeList:
		return doc
	}
	return bridge.Node{Kind: bridge.NodeMap, Members: []bridge.Member{{Key: string(kind), Value: list}}}
}

// checkTop refuses what no configuration file has: a typing error would else
// leave resources out.
func checkTop(path string, doc bridge.Node) error {
	var known []string
	for _, m := range bridge.Defaults().Effective().Members {
		known = append(known, m.Key)
	}
	for _, m := range doc.Members {
		if slices.Contains(known, m.Key) {
			continue
		}
		err := fmt.Errorf("%s:%d: %s: is unknown", path, m.Line, m.Key)
		if near := bridge.Nearest(m.Key, known); near != "" {
			err = fmt.Errorf("%w (did you mean %q?)", err, near)
		}
		return &usageError{err: err}
	}
	return nil
}

func (p *program) readDocument(path string) (bridge.Node, error) {
	if path != "-" {
		return configfile.ReadDocument(path)
	}
	const most = 4 << 20
	data, err := io.ReadAll(io.LimitReader(p.in, most))
	if err != nil {
		return bridge.Node{}, fmt.Errorf("read standard input: %w", err)
	}
	return configfile.ParseDocument("standard input", data)
}

// apply writes resources one after the other, once the bridge has nothing
// against any of them. Should one be refused all the same, it stops, and what was
// done until then is said.
func (p *program) apply(ctx context.Context, client *adminapi.Client, resources []written, o adminapi.WriteOptions, asJSON bool) error {
	would, err := preflight(ctx, client, resources, o)
	if err != nil {
		return err
	}
	if o.ValidateOnly {
		return p.printApplied(would, asJSON)
	}
	did, beside := []applied{}, 0
	for _, w := range resources {
		r, err := client.Put(ctx, w.Kind, w.Name, json.RawMessage(w.doc.AppendJSON(nil)), o)
		if err != nil {
			return errors.Join(p.printApplied(did, asJSON), fmt.Errorf("apply %s: %w", w.Resource, err))
		}
		did = append(did, appliedAs(w.Resource, r))
		if o.Stored && r.Meta.ManagedBy == adminapi.OwnerFile {
			beside++
			continue
		}
		for _, problem := range r.Meta.Problems {
			_, _ = fmt.Fprintf(p.err, "warning: %s: %s\n", w.Resource, strings.TrimPrefix(problem.String(), "warning: "))
		}
	}
	if beside > 0 {
		_, _ = fmt.Fprintf(p.err, "hint: take %s out of the bridge's configuration file: what is stored takes over at once\n", count(beside, "resource"))
	}
	return p.printApplied(did, asJSON)
}

func appliedAs(w bridge.Resource, r adminapi.Resource) applied {
	a := applied{Resource: w.String(), Action: adminapi.ActionNone, Fields: []string{}}
	if r.Meta.Change != nil {
		a.Action, a.Fields = r.Meta.Change.Action, r.Meta.Change.Fields
	}
	return a
}

func (p *program) printApplied(did []applied, asJSON bool) error {
	if asJSON {
		return printJSON(p.out, did)
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for _, a := range did {
		word, fields := a.Action, ""
		switch a.Action {
		case adminapi.ActionNone:
			word = "unchanged"
		case adminapi.ActionChanged:
			fields = "\t" + strings.Join(a.Fields, ", ")
		}
		_, _ = fmt.Fprintf(w, "%s\t%s%s\n", word, a.Resource, fields)
	}
	return w.Flush()
}

// diffCommand says what apply would change.
func (p *program) diffCommand(kind bridge.Kind) *cobra.Command {
	var path string
	c := p.apiCommand(&cobra.Command{
		Use:   "diff -f FILE",
		Short: "Say what apply would change; exit code 1 where it is anything",
		Long: "diff asks the bridge what applying a file would change, and what is wrong with it, and changes nothing. A secret that\n" +
			"the bridge holds already is no difference.",
		Example: "  queenbridge diff -f bridge.yaml",
	}, func(cmd *cobra.Command, client *adminapi.Client, asJSON bool, _ []string) error {
		resources, err := p.resourcesIn(path, kind)
		if err != nil {
			return err
		}
		did, err := preflight(cmd.Context(), client, resources, adminapi.WriteOptions{})
		if err != nil {
			return err
		}
		if err := p.printApplied(did, asJSON); err != nil {
			return err
		}
		if n := len(slices.DeleteFunc(did, func(a applied) bool { return a.Action == adminapi.ActionNone })); n > 0 {
			return &hintedError{err: fmt.Errorf("%s would change", count(n, "resource")), hint: fmt.Sprintf("run \"queenbridge apply -f %s\"", path)}
		}
		return nil
	})
	c.Flags().StringVarP(&path, "file", "f", "", "the file; - is standard input")
	return c
}

func (p *program) exportCommand() *cobra.Command {
	var everything bool
	c := p.apiCommand(&cobra.Command{
		Use:   "export",
		Short: "Print the resources that the admin API made, as a configuration file",
		Long: "export prints the stored resources as they were written. A literal secret stands as ${sealed:ID}: apply to the same\n" +
			"bridge keeps it; in a file of its own, write the secret or a reference in its place.",
		Example: "  queenbridge export > rules.yaml",
	}, func(cmd *cobra.Command, client *adminapi.Client, asJSON bool, _ []string) error {
		doc := bridge.Node{Kind: bridge.NodeMap}
		for _, kind := range bridge.Kinds() {
			list, err := exported(cmd.Context(), client, kind, everything)
			if err != nil {
				return err
			}
			doc.Members = append(doc.Members, bridge.Member{Key: string(kind), Value: list})
		}
		if asJSON {
			return printJSON(p.out, json.RawMessage(doc.AppendJSON(nil)))
		}
		_, err := p.out.Write(configfile.Format(doc))
		return err
	})
	c.Flags().BoolVar(&everything, "all", false, "also what the bridge's configuration file has, its literal secrets as ***")
	return c
}

func exported(ctx context.Context, client *adminapi.Client, kind bridge.Kind, everything bool) (bridge.Node, error) {
	list := bridge.Node{Kind: bridge.NodeList}
	for r, err := range client.List(ctx, kind) {
		if err != nil {
			return list, err
		}
		if r.Meta.State == adminapi.StateDraining || r.Meta.ManagedBy == adminapi.OwnerFile && !everything {
			continue
		}
		doc, err := bridge.ParseJSON(r.Document)
		if err != nil {
			return list, err
		}
		list.Items = append(list.Items, doc)
	}
	return list, nil
}
