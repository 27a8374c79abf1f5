package admin

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/bridge/rules"
)

func (s *Server) read(q *request) (answer, error) {
	s.rules.Sync(q.Context())
	e, ok := s.rules.Catalog().Entry(q.resource())
	if !ok {
		return answer{}, rules.ErrNotFound
	}
	a := s.one(q, http.StatusOK, e)
	if matches(q.Header.Values("If-None-Match"), a.header.Get("Etag")) {
		return answer{status: http.StatusNotModified, header: a.header}, nil
	}
	return a, nil
}

// matches says that an If-None-Match names a tag (RFC 9110 §13.1.2: the weak
// comparison). What is none names nothing.
func matches(noneMatch []string, tag string) bool {
	for one := range strings.SplitSeq(strings.Join(noneMatch, ","), ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}

// one answers with a resource and its ETag.
func (s *Server) one(q *request, status int, e rules.Entry) answer {
	r := s.resource(q, e)
	return answer{status: status, header: http.Header{"Etag": {etag(r.Meta.Version)}}, body: r}
}

// The pages of lists.
const (
	defaultPage = 100
	maxPage     = 1000
)

func (s *Server) list(q *request) (answer, error) {
	size, after, err := paging(q)
	if err != nil {
		return answer{}, err
	}
	s.rules.Sync(q.Context())
	page := adminapi.Page{Items: []adminapi.Resource{}}
	for _, e := range s.rules.Catalog().Entries(q.endpoint.kind) {
		if e.Resource.Name <= after {
			continue
		}
		if len(page.Items) == size {
			page.NextPageToken = token(page.Items[size-1].Name())
			break
		}
		page.Items = append(page.Items, s.resource(q, e))
	}
	return answer{status: http.StatusOK, body: page}, nil
}

// paging reads page_size and page_token, which holds the last name before.
func paging(q *request) (size int, after string, err error) {
	size = defaultPage
	if q.query.Has("page_size") {
		size, err = strconv.Atoi(q.query.Get("page_size"))
		if err != nil || size < 1 || size > maxPage {
			return 0, "", problem(adminapi.CodeMalformed, "page_size must be 1 to %d", maxPage)
		}
	}
	data, err := base64.RawURLEncoding.DecodeString(q.query.Get("page_token"))
	if err != nil {
		return 0, "", problem(adminapi.CodeMalformed, "page_token is none that this API gave out")
	}
	return size, string(data), nil
}

func token(name string) string { return base64.RawURLEncoding.EncodeToString([]byte(name)) }

func (s *Server) put(q *request) (answer, error)   { return s.change(q, false) }
func (s *Server) patch(q *request) (answer, error) { return s.change(q, true) }

func (s *Server) change(q *request, patch bool) (answer, error) {
	only, err := q.flag("validate_only")
	if err != nil {
		return answer{}, err
	}
	stored, err := q.flag("stored")
	if err != nil {
		return answer{}, err
	}
	condition, err := precondition(q.Header)
	if err != nil {
		return answer{}, err
	}
	doc := q.body.Clone()
	doc.Remove(metaField) // a resource may be written back as it was read
	out, err := s.rules.Write(q.Context(), rules.Write{Resource: q.resource(), Document: doc, Patch: patch,
		Precondition: condition, Stored: stored, ValidateOnly: only, By: q.who.name})
	if err != nil {
		return answer{}, err
	}
	did := changeOf(out)
	if out.Changed && !only {
		s.record(q, change{action: did.Action, before: version(out.Before), after: version(out.After), fields: out.Fields})
	}
	status := http.StatusOK
	if did.Action == adminapi.ActionCreated && !only {
		status = http.StatusCreated
	}
	a := s.one(q, status, out.Entry)
	r := a.body.(adminapi.Resource)
	r.Meta.Change = &did
	a.body = r
	if status == http.StatusCreated {
		a.header.Set("Location", q.URL.EscapedPath())
	}
	return a, nil
}

func changeOf(out rules.Written) adminapi.Change {
	c := adminapi.Change{Action: adminapi.ActionNone, Fields: append([]string{}, out.Fields...)}
	switch {
	case out.Changed && out.Before == 0:
		c.Action = adminapi.ActionCreated
	case out.Changed:
		c.Action = adminapi.ActionChanged
	}
	return c
}

// metaField is what stands beside a resource's own fields.
const metaField = "meta"

func (s *Server) delete(q *request) (answer, error) {
	stored, err := q.flag("stored")
	if err != nil {
		return answer{}, err
	}
	condition, err := precondition(q.Header)
	if err != nil {
		return answer{}, err
	}
	drain, err := q.flag("drain")
	if err != nil {
		return answer{}, err
	}
	out, err := s.rules.Delete(q.Context(), rules.Delete{Resource: q.resource(), Precondition: condition, Stored: stored, Drain: drain, By: q.who.name})
	if err != nil {
		return answer{}, err
	}
	for _, r := range out.Routes {
		s.record(q, change{action: "deleted, drains", resource: r})
	}
	if out.Gone {
		s.record(q, change{action: "deleted", before: version(out.Before)})
		return answer{status: http.StatusNoContent}, nil
	}
	if out.Entry.Version != out.Before {
		s.record(q, change{action: "deleted, drains", before: version(out.Before), after: version(out.Entry.Version)})
	}
	return s.one(q, http.StatusAccepted, out.Entry), nil
}

// etagPattern is what If-Match may hold (RFC 9110 §8.8.3, §13.1.1).
const etagPattern = `^(\*|(W/)?"[!#-~]*"( *, *(W/)?"[!#-~]*")*)$`

// precondition reads If-Match and If-None-Match. Of the latter only * makes
// sense here.
func precondition(h http.Header) (rules.Precondition, error) {
	var p rules.Precondition
	for _, name := range []string{"If-Match", "If-None-Match"} {
		if h.Values(name) != nil && strings.TrimSpace(h.Get(name)) == "" {
			return p, problem(adminapi.CodeMalformed, "%s is empty", name)
		}
	}
	match := strings.TrimSpace(strings.Join(h.Values("If-Match"), ","))
	switch none := strings.TrimSpace(strings.Join(h.Values("If-None-Match"), ",")); {
	case none != "" && none != "*":
		return p, problem(adminapi.CodeMalformed, "If-None-Match must be *")
	case none != "" && match != "":
		return p, problem(adminapi.CodeMalformed, "If-Match and If-None-Match exclude each other")
	case none == "*":
		p.Absent = true
	case match == "*":
		p.Exists = true
	case match != "":
		p.Match = []int64{}
		for tag := range strings.SplitSeq(match, ",") {
			text, quoted := unquote(strings.TrimSpace(tag))
			if !quoted {
				return p, problem(adminapi.CodeMalformed, `If-Match must be an ETag such as "17", or *`)
			}
			if v, err := strconv.ParseInt(text, 10, 64); err == nil {
				p.Match = append(p.Match, v)
			}
		}
	}
	return p, nil
}

// unquote reads an entity tag. A weak one is one, and matches nothing (RFC 9110
// §13.1.1: the comparison is the strong one).
func unquote(tag string) (text string, ok bool) {
	if weak, isWeak := strings.CutPrefix(tag, "W/"); isWeak {
		_, ok = unquote(weak)
		return "", ok
	}
	if len(tag) < 2 || tag[0] != '"' || tag[len(tag)-1] != '"' {
		return "", false
	}
	text = tag[1 : len(tag)-1]
	return text, !strings.Contains(text, `"`)
}

func etag(version string) string { return `"` + version + `"` }

// version is a stored version as text, "" where there is none.
func version(v int64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatInt(v, 10)
}

// resource is an entry in the words of the API.
func (s *Server) resource(q *request, e rules.Entry) adminapi.Resource {
	r := adminapi.Resource{Document: e.Document.AppendJSON(nil), Meta: adminapi.Meta{
		ManagedBy: adminapi.OwnerAPI, State: adminapi.StateActive, Version: version(e.Version),
		Created: e.Created, Updated: e.Updated, UpdatedBy: e.By, Problems: problems(e.Problems, bridge.Node{}),
		Paused: s.pausedNow(q, e.Resource),
	}}
	if e.File {
		sum := sha256.Sum256(r.Document)
		r.Meta.ManagedBy, r.Meta.Version = adminapi.OwnerFile, "file-"+hex.EncodeToString(sum[:8])
	}
	switch {
	case !e.InUse:
		r.Meta.State = adminapi.StateInvalid
	case !e.Draining.IsZero():
		r.Meta.State = adminapi.StateDraining
	}
	if e.Resource.Kind == bridge.KindSource {
		r.Meta.IngressPath = "/in/" + e.Resource.Name
	}
	r.Meta.Version = cmp.Or(r.Meta.Version, "none")
	return r
}
