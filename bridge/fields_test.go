package bridge_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// builtFields are the fields this version acts on; every other one must be
// refused by name. A feature that is built moves its fields here.
var builtFields = strings.Fields(`
	log.level log.format stop_timeout
	queen.urls queen.embedded queen.embedded_addr queen.token queen.strategy queen.tls.ca
	ingress.addr ingress.max_in_flight ingress.enqueue_timeout ingress.accept_buffered
	ingress.tls.cert ingress.tls.key ingress.tls.client_ca ingress.trusted_proxies ingress.spool.dir ingress.spool.max_bytes
	ingress.batch.max_items ingress.batch.max_bytes ingress.batch.max_pending ingress.batch.linger
	dispatch.max_in_flight dispatch.traces admin.addr admin.tokens
	sources[0].name sources[0].scheme sources[0].secrets sources[0].scheme_options sources[0].public_url
	sources[0].queue sources[0].partition sources[0].lanes sources[0].transaction_id sources[0].event_type
	sources[0].payload sources[0].split sources[0].methods sources[0].max_body sources[0].max_in_flight
	sources[0].respond.status sources[0].respond.body sources[0].respond.content_type
	sources[0].allow_ips sources[0].rate.per_second sources[0].rate.burst sources[0].on_invalid sources[0].spool
	sources[0].dedup sources[0].drop_headers sources[0].paused
	targets[0].name targets[0].http.url targets[0].http.method targets[0].http.timeout targets[0].http.headers
	targets[0].auth.username targets[0].auth.password targets[0].auth.token targets[0].auth.header targets[0].auth.value
	targets[0].auth.type targets[0].auth.token_url targets[0].auth.client_id targets[0].auth.client_secret targets[0].auth.scopes
	targets[0].auth.audience targets[0].auth.token_file targets[0].auth.command targets[0].auth.service targets[0].auth.region
	targets[0].auth.assume_role targets[0].tls.ca targets[0].tls.cert targets[0].tls.key targets[0].tls.pins targets[0].network.proxy
	targets[0].signing.scheme targets[0].signing.secrets targets[0].network.profile targets[0].network.allow
	targets[0].concurrency targets[0].paused targets[0].rate.per_second targets[0].rate.burst targets[0].rate.shared
	targets[0].breaker.enabled targets[0].breaker.failures targets[0].breaker.open targets[0].breaker.max_open targets[0].disable_after
	targets[0].lambda.function targets[0].lambda.qualifier targets[0].lambda.region targets[0].lambda.endpoint
	targets[0].lambda.assume_role targets[0].lambda.invoke targets[0].lambda.payload targets[0].lambda.timeout
	routes[0].name routes[0].queue routes[0].target routes[0].group routes[0].subscribe routes[0].filter routes[0].ordering
	routes[0].pattern routes[0].batch.size routes[0].batch.window routes[0].report_item_failures routes[0].format
	routes[0].transform.body routes[0].transform.headers
	routes[0].detach_after routes[0].retry.max_attempts routes[0].retry.max_age routes[0].retry.backoff routes[0].retry.jitter
	routes[0].outcomes.success routes[0].outcomes.retry routes[0].outcomes.dead routes[0].concurrency routes[0].paused
	routes[0].reply.queue routes[0].reply.partition routes[0].reply.on_failure routes[0].on_exhausted
	queues[0].name queues[0].lease queues[0].retention queues[0].completed_retention queues[0].dedup_window
`)

// TestEveryFieldIsReadOrRefused sets each field of the configuration in turn
// and proves that its value arrives and that it is either built or refused by
// name.
func TestEveryFieldIsReadOrRefused(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for path, typ := range leaves("", reflect.TypeFor[bridge.Config]()) {
		seen[path] = true
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			doc := document(t, wholeDocument)
			setAt(t, &doc, path, otherValue(t, typ))
			c, problems := bridge.Decode(doc)
			if errs := errorsOf(problems); len(errs) > 0 {
				t.Fatalf("Decode: %v", errs)
			}
			checkArrived(t, c, path)
			checkBuiltOrRefused(t, c, path)
		})
	}
	for _, path := range builtFields {
		if !seen[path] {
			t.Errorf("%s is no field", path)
		}
	}
}

func checkArrived(t *testing.T, c bridge.Config, path string) {
	t.Helper()
	standard, _ := bridge.Decode(document(t, wholeDocument))
	after, _ := c.Effective().At(path)
	before, _ := standard.Effective().At(path)
	secret := after.Text == "***" || len(after.Items) > 0 && after.Items[0].Text == "***"
	if reflect.DeepEqual(before, after) && !secret {
		t.Errorf("%s has no effect on the configuration: %+v", path, after)
	}
}

func checkBuiltOrRefused(t *testing.T, c bridge.Config, path string) {
	t.Helper()
	refused := refusals(c)
	switch {
	case slices.Contains(builtFields, path):
		if len(refused) > 0 {
			t.Errorf("%s is built and refused: %v", path, refused)
		}
	case !slices.Equal(refused, []string{path}):
		t.Errorf("%s is neither built nor refused by name: %v", path, refused)
	}
}

func refusals(c bridge.Config) []string {
	var paths []string
	for _, p := range c.Unbuilt() {
		if strings.HasSuffix(p.Text, " not built yet in this version") && !p.Warning {
			paths = append(paths, p.Path)
		}
	}
	return paths
}

func errorsOf(problems []bridge.Problem) []bridge.Problem {
	return slices.DeleteFunc(slices.Clone(problems), func(p bridge.Problem) bool { return p.Warning })
}

// leaves are the paths and types of all fields below a struct; the first entry
// stands for a list of structs.
func leaves(path string, typ reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	add := func(path string, typ reflect.Type) {
		for p, leaf := range leaves(path, typ) {
			all[p] = leaf
		}
	}
	switch {
	case typ.Kind() == reflect.Struct:
		for i := range typ.NumField() {
			if name := typ.Field(i).Tag.Get("json"); name != "-" {
				add(strings.TrimPrefix(path+"."+name, "."), typ.Field(i).Type)
			}
		}
	case typ.Kind() == reflect.Pointer:
		add(path, typ.Elem())
	case path == "admin.tokens": // checked as a whole
		all[path] = typ
	case typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Struct:
		add(path+"[0]", typ.Elem())
	default:
		all[path] = typ
	}
	return all
}

// otherValue is a value that is no field's default.
func otherValue(t *testing.T, typ reflect.Type) bridge.Node {
	t.Helper()
	text := map[reflect.Type]string{
		reflect.TypeFor[time.Duration]():       `"7s"`,
		reflect.TypeFor[bridge.Size]():         `"7KiB"`,
		reflect.TypeFor[int]():                 `7`,
		reflect.TypeFor[float64]():             `7.5`,
		reflect.TypeFor[[]time.Duration]():     `["7s"]`,
		reflect.TypeFor[map[string]string]():   `{"x": "y"}`,
		reflect.TypeFor[map[string]any]():      `{"x": [7, true, null, {"y": 1.5}]}`,
		reflect.TypeFor[any]():                 `{"x": ["y"]}`,
		reflect.TypeFor[[]bridge.AdminToken](): `[{"name": "ci"}]`,
	}[typ]
	if text == "" {
		text = map[reflect.Kind]string{reflect.String: `"other"`, reflect.Slice: `["other"]`}[typ.Kind()]
	}
	if typ.Kind() == reflect.Bool {
		return bridge.Node{Kind: bridge.NodeBool, Text: "flip"} // setAt knows the default
	}
	if text == "" {
		t.Fatalf("no value for %s", typ)
	}
	return document(t, text)
}

// setAt puts value at a path that may lead through [0].
func setAt(t *testing.T, doc *bridge.Node, path string, value bridge.Node) {
	t.Helper()
	if value.Text == "flip" {
		standard, _ := bridge.Decode(*doc)
		now, _ := standard.Effective().At(path)
		value.Text = map[string]string{"true": "false"}[now.Text]
		if value.Text == "" {
			value.Text = "true"
		}
	}
	list, rest, inList := strings.Cut(path, "[0].")
	if !inList {
		doc.Set(path, value)
		return
	}
	items := doc.Member(list)
	items.Items = slices.Clone(items.Items)
	items.Items[0].Set(rest, value)
	doc.Set(list, items)
}

func TestDefaultsAreBuilt(t *testing.T) {
	t.Parallel()
	c, _ := bridge.Decode(document(t, wholeDocument))
	if problems := c.Unbuilt(); len(problems) > 0 {
		t.Errorf("defaults are refused: %v", texts(problems))
	}
	if problems := bridge.Defaults().Check(nil); len(problems) > 0 {
		t.Errorf("an empty document has problems: %v", texts(problems))
	}
}
