package provider

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/terraform/internal/shape"
)

// report makes diagnostics of an error: one for each problem, at its attribute.
// No answer of the bridge holds a secret.
func (m *managed) report(diags *diag.Diagnostics, doing string, config tftypes.Value, err error) {
	answer, ok := errors.AsType[*adminapi.Error](err)
	if !ok || len(answer.Problems) == 0 {
		diags.AddError(fmt.Sprintf("Cannot %s the %s", doing, m.word()), explain(err))
		return
	}
	m.problems(diags, config, answer.Problems)
}

// explain adds what to do to an error that the API's own words leave open.
func explain(err error) string {
	text := err.Error()
	switch {
	case adminapi.IsCode(err, adminapi.CodeManagedByFile):
		return text + "\n\nTake it out of the file, or out of Terraform (a removed block)."
	case adminapi.IsCode(err, adminapi.CodeUnauthenticated):
		return text + "\n\nSet the provider's token, or " + envToken + "."
	case adminapi.IsCode(err, adminapi.CodeInUse):
		return text + "\n\nWhat uses it goes first. Between resources of Terraform a reference says so: " +
			"target = queenbridge_target.ci.name instead of the text \"ci\"."
	case adminapi.IsCode(err, adminapi.CodeUnavailable):
		return text + "\n\nApply again: what was made already is not made twice."
	case errors.Is(err, context.DeadlineExceeded):
		return text + "\n\nApply again, or give it more time with timeouts."
	}
	return text
}

func (m *managed) problems(diags *diag.Diagnostics, config tftypes.Value, list []adminapi.Problem) {
	for _, p := range list {
		text := strings.TrimPrefix(p.Text, "warning: ")
		if p.Path != "" {
			text = p.Path + ": " + text
		}
		switch {
		case p.Text == "is unknown" || strings.HasPrefix(p.Text, "is unknown ("):
			text += ": the bridge is perhaps older than this provider"
		case p.Path == "target" && m.kind == bridge.KindRoute:
			text += ". A target of Terraform is referred to, so that it is made first: target = queenbridge_target.ci.name"
		}
		at := m.attributePath(p.Path, config)
		if p.Warning {
			diags.AddAttributeWarning(at, "About the "+m.word(), text)
		} else {
			diags.AddAttributeError(at, "Invalid "+m.word(), text)
		}
	}
}

// warn shows what the bridge has to say about a resource it took.
func (m *managed) warn(diags *diag.Diagnostics, config tftypes.Value, meta adminapi.Meta) {
	list := make([]adminapi.Problem, len(meta.Problems))
	for i, p := range meta.Problems {
		p.Warning = true
		if meta.State == adminapi.StateInvalid {
			p.Text += ". The " + m.word() + " is stored and not in use"
		}
		list[i] = p
	}
	m.problems(diags, config, list)
}

// attributePath is where a problem of the API stands in a configuration, as far
// as it leads. Of a secret it is the argument that config has it in.
func (m *managed) attributePath(problem string, config tftypes.Value) path.Path {
	if ofAnother(problem) {
		return path.Empty()
	}
	for _, secret := range m.secrets {
		if _, within := bridge.Within(problem, secret); within && isSet(config, secret+writeOnly) {
			return descend(path.Empty(), m.fields, secret+writeOnly)
		}
	}
	return descend(path.Empty(), m.fields, problem)
}

// ofAnother says that a problem is another resource's, which would no longer be
// right: routes/pushes-to-ci.target.
func ofAnother(problem string) bool {
	kind, _, found := strings.Cut(problem, "/")
	return found && bridge.Kind(kind).Valid()
}

func descend(at path.Path, fields []shape.Field, rest string) path.Path {
	name := rest
	if end := strings.IndexAny(rest, ".["); end >= 0 {
		name = rest[:end]
	}
	rest = strings.TrimPrefix(rest[len(name):], ".")
	plain := strings.TrimSuffix(name, writeOnly)
	for _, f := range fields {
		if f.Name != name && (f.Name != plain || !f.IsSecret()) {
			continue
		}
		at = at.AtName(name)
		index, isIndex := strings.CutPrefix(rest, "[")
		switch {
		case rest == "":
		case f.Form == shape.Object:
			return descend(at, f.Fields, rest)
		case f.Form == shape.Map:
			return at.AtMapKey(rest)
		case f.Form == shape.List && isIndex:
			if i, err := strconv.Atoi(strings.TrimSuffix(index, "]")); err == nil {
				return at.AtListIndex(i)
			}
		}
		return at
	}
	return at
}

// raced says what somebody else changed since the last read.
func (m *managed) raced(ctx context.Context, state tftypes.Value, known credentials) string {
	name := textAt(state, attrName)
	text := fmt.Sprintf("The %s %q was changed after it was read", m.word(), name)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	r, err := m.api.Read(ctx, m.kind, name)
	switch {
	case adminapi.IsCode(err, adminapi.CodeNotFound):
		text = fmt.Sprintf("The %s %q was deleted after it was read", m.word(), name)
	case err == nil:
		if r.Meta.UpdatedBy != "" {
			text += ", by " + r.Meta.UpdatedBy
		}
		if fields := m.changedSince(state, r, known); len(fields) > 0 {
			text += ": " + strings.Join(fields, ", ")
		}
	}
	return text + ". Nothing was written. Run terraform plan again to see it, and then apply."
}

func (m *managed) changedSince(state tftypes.Value, r adminapi.Resource, known credentials) []string {
	before, err := shape.Document(m.fields, state)
	now, err2 := bridge.ParseJSON(r.Document)
	if err != nil || err2 != nil {
		return nil
	}
	return before.Differences(known.asConfigured(now, before))
}
