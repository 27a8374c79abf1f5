package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
)

// preflight asks the bridge what applying would do to each resource, and changes
// nothing. The error lists all that is wrong with any of them, but for what
// others of them mend.
func preflight(ctx context.Context, client *adminapi.Client, resources []written, o adminapi.WriteOptions) ([]applied, error) {
	o.ValidateOnly = true
	did := []applied{}
	var wrong []error
	for _, w := range resources {
		a, err := preview(ctx, client, w, resources, o)
		switch refused, answered := errors.AsType[*adminapi.Error](err); {
		case err == nil:
			did = append(did, a)
		case answered && refused.Code.OfTheResource():
			wrong = append(wrong, w.refused(refused)...)
		default:
			return nil, err
		}
	}
	return did, errors.Join(wrong...)
}

// preview is what applying one of resources would do to it.
func preview(ctx context.Context, client *adminapi.Client, w written, resources []written, o adminapi.WriteOptions) (applied, error) {
	r, err := client.Put(ctx, w.Kind, w.Name, json.RawMessage(w.doc.AppendJSON(nil)), o)
	if err == nil {
		return appliedAs(w.Resource, r), nil
	}
	refused, answered := errors.AsType[*adminapi.Error](err)
	if !answered || refused.Code != adminapi.CodeInvalid {
		return applied{}, err
	}
	if left := slices.DeleteFunc(slices.Clone(refused.Problems), func(p adminapi.Problem) bool { return p.Warning || mends(resources, w, p) }); len(left) > 0 {
		shown := *refused
		shown.Problems = left
		return applied{}, &shown
	}
	// It waits for others of the file only: what it needs is made before it.
	a := applied{Resource: w.String(), Action: adminapi.ActionChanged, Fields: []string{}}
	if _, err := client.Read(ctx, w.Kind, w.Name); adminapi.IsCode(err, adminapi.CodeNotFound) {
		a.Action = adminapi.ActionCreated
	}
	return a, nil
}

// refused are the lines about a resource that the bridge does not take, each with
// the file's line.
func (w written) refused(e *adminapi.Error) (lines []error) {
	for _, p := range e.Problems {
		path := w.String()
		if p.Path != "" {
			path += "." + p.Path
		}
		if kind, _, another := strings.Cut(p.Path, "/"); another && bridge.Kind(kind).Valid() {
			path = p.Path
		}
		lines = append(lines, fmt.Errorf("%s:%d: %s: %s", w.file, w.line(p.Path), path, p.Text))
	}
	if lines == nil {
		lines = []error{fmt.Errorf("%s:%d: %s: %w", w.file, w.doc.Line, w.Resource, e)}
	}
	return lines
}

// line is where a path stands in the file, or what it is in.
func (w written) line(path string) int {
	n, _ := w.doc.At(path)
	return cmp.Or(n.Line, w.doc.Line)
}

// mends says that applying the others of a file takes a problem away: they make
// the target of a route, or change the resource that the problem is about.
func mends(resources []written, w written, p adminapi.Problem) bool {
	return slices.ContainsFunc(resources, func(other written) bool {
		if _, about := bridge.Within(p.Path, other.String()); about {
			return true
		}
		return w.Kind == bridge.KindRoute && p.Path == "target" && other.Kind == bridge.KindTarget && other.Name == w.doc.Member("target").Text
	})
}
