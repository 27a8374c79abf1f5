package bridge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/queenbridge/queenbridge/bridge"
)

// Each case changes one thing of a good configuration and must get exactly one
// problem (or none).
func TestValidate(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 64)
	tests := []struct{ path, value, want string }{
		{"log.level", `"loud"`, `log.level: must be debug, info, warn or error, got "loud"`},
		{"log.level", `"inof"`, `log.level: must be debug, info, warn or error, got "inof" (did you mean "info"?)`},
		{"log.format", `"xml"`, `log.format: must be text or json, got "xml"`},
		{"log.format", `"json"`, ""},
		{"stop_timeout", `"0s"`, `stop_timeout: must be above 0s, got 0s`},
		{"dispatch.max_in_flight", `0`, `dispatch.max_in_flight: must be 1 or more, got 0`},
		{"queen.urls", `[]`, `queen.urls: is required: name the Queen nodes, or set queen.embedded`},
		{"queen.urls", `["http://a:6632", "https://b/prefix"]`, ""},
		{"queen.urls", `["queen:6632"]`, `queen.urls[0]: must be a URL that begins with http:// or https:// and a host`},
		{"queen.urls", `["http://u:pw@a"]`, `queen.urls[0]: must not hold a user or password`},
		{"queen.urls", `["http://a?x=1"]`, `queen.urls[0]: must not hold a query`},
		{"queen.urls", `["http://a", "http://a"]`, `queen.urls[1]: is listed twice`},
		{"queen.embedded_addr", `"127.0.0.1:1"`, `warning: queen.embedded_addr: has no effect without queen.embedded`},
		{"queen.strategy", `"random"`, `queen.strategy: must be affinity, round_robin or session, got "random"`},
		{"queen.strategy", `"session"`, ""},
		{"queen.tls.ca", `"ca.pem"`, `queen.tls.ca: needs a URL in queen.urls that begins with https://`},
		{"queen", `{"urls": ["http://a", "HTTPS://b"], "tls": {"ca": "ca.pem"}}`, ""},
		{"queen", `{"embedded": "memory", "tls": {"ca": "ca.pem"}}`, `queen.tls.ca: needs a URL in queen.urls that begins with https://`},
		{"ingress.addr", `"8080"`, `ingress.addr: must be a listen address such as :8080 or 127.0.0.1:8080, got "8080"`},
		{"ingress.addr", `":http"`, `ingress.addr: must be a listen address such as :8080 or 127.0.0.1:8080, got ":http"`},
		{"ingress.addr", `":65536"`, `ingress.addr: must be a listen address such as :8080 or 127.0.0.1:8080, got ":65536"`},
		{"ingress.addr", `"[::1]:0"`, ""},
		{"ingress.tls", `{"cert": "a.pem"}`, `ingress.tls.cert: needs ingress.tls.key, too`},
		{"ingress.tls", `{"key": "a.pem"}`, `ingress.tls.key: needs ingress.tls.cert, too`},
		{"ingress.tls", `{"client_ca": "a.pem"}`, `ingress.tls.client_ca: needs ingress.tls.cert and key`},
		{"ingress.trusted_proxies", `["10.0.0.0/8", "10.0.0.1"]`, `ingress.trusted_proxies[1]: must be a CIDR such as 10.0.0.0/8 or 192.0.2.7/32, got "10.0.0.1"`},
		{"ingress.max_in_flight", `0`, `ingress.max_in_flight: must be 1 or more, got 0`},
		{"ingress.enqueue_timeout", `"-1s"`, `ingress.enqueue_timeout: must be above 0s, got -1s`},
		{"ingress.batch.max_items", `0`, `ingress.batch.max_items: must be 1 or more, got 0`},
		{"ingress.batch.max_bytes", `"65MiB"`, `ingress.batch.max_bytes: must be between 1B and 64MiB, got 65MiB`},
		{"ingress.batch.max_pending", `99`, `ingress.batch.max_pending: must be at least batch.max_items (100), got 99`},
		{"ingress.batch.linger", `"-1s"`, `ingress.batch.linger: must be 0s or more, got -1s`},
		{"ingress.batch.linger", `"5s"`, `ingress.batch.linger: must be below ingress.enqueue_timeout (5s), got 5s`},
		{"ingress.spool.max_bytes", `0`, `ingress.spool.max_bytes: must be 1B or more, got 0B`},
		{"admin.addr", `":8081"`, `admin.addr: ":8081" is reachable from other machines and no token is set: set QUEENBRIDGE_ADMIN_TOKEN, or bind to 127.0.0.1`},
		{"admin.addr", `"localhost:8081"`, ""},
		{"admin.addr", `"[::1]:8081"`, ""},
		{"admin", `{"addr": ":1", "tokens": [{"name": "ci", "role": "viewer", "token": "t"}]}`, ""},
		{"admin.tokens", `[{"name": "ci", "role": "god", "token": "t"}]`, `admin.tokens[0].role: must be admin, operator or viewer, got "god"`},
		{"admin.tokens", `[{"name": "ci", "role": "admin", "token": " "}]`, `admin.tokens[0].token: is required`},

		{"sources[0].name", `""`, `sources[0].name: is required`},
		{"sources[0].name", `"` + long + `"`, `sources[0].name: must be 1 to 63 of a-z, 0-9, _ and -, beginning with a letter or digit, got "` + long + `"`},
		{"sources[0].name", `"-a"`, `sources[0].name: must be 1 to 63 of a-z, 0-9, _ and -, beginning with a letter or digit, got "-a"`},
		{"sources[0].scheme", `"githbu"`, `sources[0].scheme: scheme "githbu" is unknown (did you mean "github"?)`},
		{"sources[0].scheme", `"paypall"`, `sources[0].scheme: scheme "paypall" is unknown (did you mean "paypal"?)`},
		{"sources[0].secrets", `[]`, `sources[0].secrets: scheme github needs at least one secret (scheme none accepts everything)`},
		{"sources[0].queue", `""`, `sources[0].queue: is required`},
		{"sources[0].queue", `"` + strings.Repeat("é", 256) + `"`, `sources[0].queue: must be at most 255 characters, got 256`},
		{"sources[0].queue", `"` + strings.Repeat("é", 255) + `"`, ""},
		{"sources[0].queue", `"a\nb"`, `sources[0].queue: must not hold control characters, got "a\nb"`},
		{"sources[0].queue", `"queenbridge-retry.x"`, `sources[0].queue: must not begin with queenbridge-retry.: such queues are the bridge's own`},
		{"sources[0].partition", `"body:repository.full_name"`, ""},
		{"sources[0].partition", `"literal:one two"`, ""},
		{"sources[0].partition", `"literal:a\u0000"`, `sources[0].partition: must not hold control characters, got "literal:a\x00"`},
		{"sources[0].partition", `"body"`, `sources[0].partition: must be body:<path>, header:<name>, query:<name> or literal:<text>, got "body"`},
		{"sources[0].partition", `"body:"`, `sources[0].partition: names nothing after body:`},
		{"sources[0].partition", `"body:a..b"`, `sources[0].partition: must be a path such as data.object.id (\. is a dot in a key), got "a..b"`},
		{"sources[0].partition", `"body:a\\..b"`, ""},
		{"sources[0].transaction_id", `"header:X Y"`, `sources[0].transaction_id: must name a header after header:, got "header:X Y"`},
		{"sources[0].transaction_id", `"literal:x"`, `sources[0].transaction_id: must be body:<path>, header:<name> or query:<name>, got "literal:x"`},
		{"sources[0].event_type", `"type"`, `sources[0].event_type: must be body:<path>, header:<name>, query:<name> or literal:<text>, got "type"`},
		{"sources[0].event_type", `"literal:order.created"`, ""},
		{"sources[0].lanes", `0`, `sources[0].lanes: must be 1 or more, got 0`},
		{"sources[0].payload", `"raw"`, `sources[0].payload: must be event or json, got "raw"`},
		{"sources[0].split", `"@this"`, ""},
		{"sources[0].split", `"none"`, ""},
		{"sources[0].split", `".events"`, `sources[0].split: must be a path such as data.object.id (\. is a dot in a key), got ".events"`},
		{"sources[0].methods", `["POST", "put"]`, `sources[0].methods[1]: must be a method in upper case such as POST, got "put"`},
		{"sources[0].max_body", `"1GiB"`, `sources[0].max_body: must be at most 64MiB (the largest request Queen takes), got 1GiB`},
		{"sources[0].max_in_flight", `-1`, `sources[0].max_in_flight: must be 0 or more, got -1`},
		{"sources[0].allow_ips", `["x"]`, `sources[0].allow_ips[0]: must be a CIDR such as 10.0.0.0/8, or an address such as 192.0.2.7, got "x"`},
		{"sources[0].allow_ips", `["192.0.2.7", "2001:db8::1", "::ffff:192.0.2.7", "10.0.0.0/8"]`, ""},
		{"sources[0].allow_ips", `["fe80::1%eth0"]`, `sources[0].allow_ips[0]: must be a CIDR such as 10.0.0.0/8, or an address such as 192.0.2.7, got "fe80::1%eth0"`},
		{"sources[0].rate", `{"per_second": -1}`, `sources[0].rate.per_second: must be 0 (off) or more, got -1`},
		{"sources[0].rate", `{"burst": 1}`, `sources[0].rate.burst: has no effect without rate.per_second`},
		{"sources[0].respond", `{"status": 302}`, `sources[0].respond.status: must be 0 (the preset's) or 200 to 299, as anything else makes the provider send again, got 302`},
		{"sources[0].respond", `{"body": "ok"}`, `sources[0].respond.body: has no effect without respond.status: set it, such as 200`},
		{"sources[0].respond", `{"status": 204, "body": "ok"}`, `sources[0].respond.body: status 204 has no body`},
		{"sources[0].respond", `{"status": 200, "content_type": "a\r\nb"}`, `sources[0].respond.content_type: must not hold control characters, got "a\r\nb"`},
		{"sources[0].on_invalid", `"accept"`, `sources[0].on_invalid: must be reject or quarantine, got "accept"`},
		{"sources[0].dedup", `"lax"`, `sources[0].dedup: must be strict or off, got "lax"`},
		{"sources[0].spool", `true`, `sources[0].spool: needs ingress.spool.dir`},
		{"sources[0].drop_headers", `["x-ok", "bad name"]`, `sources[0].drop_headers[1]: must be a header name, got "bad name"`},

		{"targets[0].http", `null`, `targets[0].http: is required: a target needs exactly one of http and lambda`},
		{"targets[0].lambda", `{"function": "f"}`, `targets[0].lambda: excludes http: a target needs exactly one of http and lambda`},
		{"targets", `[{"name": "ci", "lambda": {"function": "thumb"}, "network": {"profile": "public", "allow": ["10.0.0.0/8"]}}]`, ""},
		{"targets", `[{"name": "ci", "lambda": {"function": "thumb:live"}}]`, ""},
		{"targets", `[{"name": "ci", "lambda": {"function": "thumb", "qualifier": "$LATEST", "region": "us-gov-west-1", "endpoint": "http://localhost:4566"}}]`, ""},
		{"targets", `[{"name": "ci", "lambda": {"function": "123456789012:function:thumb:7", "assume_role": "arn:aws:iam::123456789012:role/path/caller"}}]`, ""},
		{"targets", `[{"name": "ci", "lambda": {"function": "arn:aws-cn:lambda:cn-north-1:123456789012:function:thumb", "region": "cn-north-1", "timeout": "905s"}}]`, ""},
		{"targets", `[{"name": "ci", "lambda": {"function": ""}}]`, `targets[0].lambda.function: is required: a name or an ARN`},
		{"targets", `[{"name": "ci", "lambda": {"function": "thumb nail"}}]`, `targets[0].lambda.function: must be a name (thumb), a partial ARN (123456789012:function:thumb) or an ARN (arn:aws:lambda:eu-west-1:123456789012:function:thumb), got "thumb nail"`},
		{"targets", `[{"name": "ci", "lambda": {"function": "arn:aws:lambda:eu-west-1:thumb"}}]`, `targets[0].lambda.function: must be a name (thumb), a partial ARN (123456789012:function:thumb) or an ARN (arn:aws:lambda:eu-west-1:123456789012:function:thumb), got "arn:aws:lambda:eu-west-1:thumb"`},
		{"targets", `[{"name": "ci", "lambda": {"function": "arn:aws:sqs:eu-west-1:123456789012:function:thumb"}}]`, `targets[0].lambda.function: must be a name (thumb), a partial ARN (123456789012:function:thumb) or an ARN (arn:aws:lambda:eu-west-1:123456789012:function:thumb), got "arn:aws:sqs:eu-west-1:123456789012:function:thumb"`},
		{"targets", `[{"name": "ci", "lambda": {"function": "thumb:live", "qualifier": "live"}}]`, `targets[0].lambda.qualifier: is part of lambda.function, too (live): write it once`},
		{"targets", `[{"name": "ci", "lambda": {"function": "thumb", "qualifier": "a b"}}]`, `targets[0].lambda.qualifier: must be a version, an alias or $LATEST, got "a b"`},
		{"targets", `[{"name": "ci", "lambda": {"function": "arn:aws:lambda:eu-west-1:123456789012:function:thumb", "region": "eu-west-2"}}]`, `targets[0].lambda.region: is eu-west-1 in the ARN of lambda.function: remove one`},
		{"targets", `[{"name": "ci", "lambda": {"function": "thumb", "region": "Ireland"}}]`, `targets[0].lambda.region: must be a region such as eu-west-1, got "Ireland"`},
		{"targets", `[{"name": "ci", "lambda": {"function": "thumb", "endpoint": "localhost:4566"}}]`, `targets[0].lambda.endpoint: must be a URL that begins with http:// or https:// and a host`},
		{"targets", `[{"name": "ci", "lambda": {"function": "thumb", "assume_role": "caller"}}]`, `targets[0].lambda.assume_role: must be the ARN of a role, got "caller"`},
		{"targets", `[{"name": "ci", "lambda": {"function": "thumb", "invoke": "async"}}]`, `targets[0].lambda.invoke: must be request_response or event, got "async"`},
		{"targets", `[{"name": "ci", "lambda": {"function": "thumb", "payload": "sns"}}]`, `targets[0].lambda.payload: must be sqs, raw or cloudevents, got "sns" (did you mean "sqs"?)`},
		{"targets", `[{"name": "ci", "lambda": {"function": "thumb", "timeout": "906s"}}]`, `targets[0].lambda.timeout: must be above 0s and at most 905s, got 15m6s`},
		{"targets", `[{"name": "ci", "lambda": {"function": "thumb"}, "auth": {"type": "bearer", "token": "t"}}]`, `targets[0].auth: belongs to http targets: a Lambda function is called with AWS credentials, those of the environment or of lambda.assume_role`},
		{"targets", `[{"name": "ci", "lambda": {"function": "thumb"}, "signing": {"secrets": ["whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="]}}]`, `targets[0].signing: belongs to http targets: a Lambda function knows its callers by their AWS credentials`},
		{"targets", `[{"name": "ci", "lambda": {"function": "thumb"}, "tls": {"ca": "ca.pem"}}]`, `targets[0].tls: belongs to http targets: remove it`},
		{"targets", `[{"name": "ci", "lambda": {"function": "thumb"}, "network": {"proxy": "http://proxy:3128"}}]`, `targets[0].network.proxy: belongs to http targets: remove it`},
		{"targets[0].http.url", `""`, `targets[0].http.url: is required`},
		{"targets[0].http.url", `"file:///etc/passwd"`, `targets[0].http.url: must be a URL that begins with http:// or https:// and a host`},
		{"targets[0].http.url", `"http://"`, `targets[0].http.url: must be a URL that begins with http:// or https:// and a host`},
		{"targets[0].http.url", `"http://u@h/"`, `targets[0].http.url: must not hold a user or password`},
		{"targets[0].http.url", `"http://h/#"`, `targets[0].http.url: must not hold a fragment (#)`},
		{"targets[0].http.url", `"http://h:0/"`, `targets[0].http.url: must name a port between 1 and 65535`},
		{"targets[0].http.url", `"https://h/p?q=1"`, ""},
		{"targets[0].http.method", `"post"`, `targets[0].http.method: must be a method in upper case such as POST, got "post"`},
		{"targets[0].http.timeout", `"0s"`, `targets[0].http.timeout: must be above 0s, got 0s`},
		{"targets[0].http.headers", `{"X Y": "z"}`, `targets[0].http.headers.X Y: must be a header name, got "X Y"`},
		{"targets[0].http.headers", `{"webhook-id": "z"}`, `targets[0].http.headers.webhook-id: is set by the bridge on every call: remove it`},
		{"targets[0].http.headers", `{"X-Y": "a\nb"}`, `targets[0].http.headers.X-Y: must not hold control characters`},
		{"targets[0].auth", `{"type": "magic"}`, `targets[0].auth.type: must be none, basic, bearer, api_key, oauth2, oidc or sigv4, got "magic"`},
		{"targets[0].auth", `{"type": "basic", "username": "u"}`, ""},
		{"targets[0].auth", `{"type": "basic", "password": "p"}`, `targets[0].auth.username: is required by auth type basic`},
		{"targets[0].auth", `{"token": "t"}`, `targets[0].auth.token: belongs to auth type bearer, not none`},
		{"targets[0].auth", `{"type": "bearer"}`, `targets[0].auth.token: is required by auth type bearer`},
		{"targets[0].auth", `{"type": "api_key", "header": "a b", "value": "v"}`, `targets[0].auth.header: must be a header name, got "a b"`},
		{"targets[0].auth", `{"type": "oidc"}`, `targets[0].auth.token_file: auth type oidc needs exactly one of token_file and command`},
		{"targets[0].auth", `{"type": "basic", "username": "a:b"}`, `targets[0].auth.username: must not hold a colon: it ends the username`},
		{"targets[0].auth", `{"type": "bearer", "token": "t\n"}`, `targets[0].auth.token: must not hold control characters such as a line break`},
		{"targets[0].auth", `{"type": "api_key", "header": "host", "value": "v"}`, `targets[0].auth.header: "host" is set by the bridge on every call: choose another header`},
		{"targets[0].auth", `{"type": "oidc", "token_file": "t"}`, ""},
		{"targets[0].auth", `{"type": "oidc", "command": ["gcloud", "auth", "print-identity-token"]}`, ""},
		{"targets[0].auth", `{"type": "oidc", "command": [""]}`, `targets[0].auth.command: must begin with the program to run`},
		{"targets[0].auth", `{"type": "oidc", "token_file": "t", "command": ["c"]}`, `targets[0].auth.token_file: auth type oidc needs exactly one of token_file and command`},
		{"targets[0].auth", `{"type": "sigv4", "service": "lambda"}`, ""},
		{"targets[0].auth", `{"type": "sigv4"}`, `targets[0].auth.service: is required by auth type sigv4`},
		{"targets[0].auth", `{"type": "sigv4", "service": "lambda", "assume_role": "r"}`, `targets[0].auth.assume_role: must be the ARN of a role, got "r"`},
		{"targets[0].auth", oauth2("https://id.example.com/token", `"a", "b:c/d"`), ""},
		{"targets[0].auth", oauth2("http://127.0.0.1:9000/token", ""), ""},
		{"targets[0].auth", oauth2("http://id.example.com/token", ""), `targets[0].auth.token_url: must begin with https://: the client secret would travel in clear (RFC 6749 §3.2)`},
		{"targets[0].auth", oauth2("https://u:s3cret@id.example.com/token", ""), `targets[0].auth.token_url: must not hold a user or password`},
		{"targets[0].auth", oauth2("", ""), `targets[0].auth.token_url: is required by auth type oauth2`},
		{"targets[0].auth", oauth2("https://id.example.com/token", `"a b"`), `targets[0].auth.scopes[0]: must be one scope, without spaces, got "a b"`},
		{"targets[0].signing", `{"scheme": "v2"}`, `targets[0].signing.scheme: must be v1 or v1a, got "v2" (did you mean "v1"?)`},
		{"targets[0].network", `{"profile": "lan"}`, `targets[0].network.profile: must be internal or public, got "lan"`},
		{"targets[0].network", `{"allow": ["10.0.0.0/40"]}`, `targets[0].network.allow[0]: must be a CIDR such as 10.0.0.0/8 or 192.0.2.7/32, got "10.0.0.0/40"`},
		{"targets[0].network", `{"proxy": "socks5://p"}`, `targets[0].network.proxy: must be a URL that begins with http:// or https:// and a host`},
		{"targets[0].network", `{"proxy": "http://u:p@proxy:3128"}`, `targets[0].network.proxy: must not hold a user or password`},
		{"targets[0].network", `{"proxy": "http://proxy:3128/x"}`, `targets[0].network.proxy: must be a host and port only, such as http://proxy.internal:3128`},
		{"targets[0].network", `{"proxy": "http://proxy:3128/"}`, ""},
		{"targets[0].concurrency", `0`, `targets[0].concurrency: must be 1 or more, got 0`},
		{"targets[0].rate", `{"shared": true}`, `targets[0].rate.shared: has no effect without rate.per_second`},
		{"targets[0].rate", `{"per_second": 2.5, "burst": 10, "shared": true}`, ""},
		{"targets[0].rate", `{"per_second": -1}`, `targets[0].rate.per_second: must be 0 (off) or more, got -1`},
		{"targets[0].rate", `{"per_second": 1e300}`, `targets[0].rate.per_second: must be at most 1000000, got 1e+300`},
		{"targets[0].rate", `{"burst": 5}`, `targets[0].rate.burst: has no effect without rate.per_second`},
		{"targets[0].rate", `{"per_second": 1, "burst": 2000000}`, `targets[0].rate.burst: must be at most 1000000, got 2000000`},
		{"targets[0].rate", `{"per_second": 1e-9, "shared": true}`, `targets[0].rate.per_second: must be at least 0.00001 where it is shared, got 1e-09`},
		{"targets[0].rate", `{"per_second": 0.001}`, ""},
		{"targets[0].breaker", `{"enabled": false}`, ""},
		{"targets[0].breaker", `{"open": "0s"}`, `targets[0].breaker.open: must be above 0s, got 0s`},
		{"targets[0].breaker", `{"failures": 0}`, `targets[0].breaker.failures: must be 1 or more, got 0`},
		{"targets[0].breaker", `{"max_open": "1s"}`, `targets[0].breaker.max_open: must be at least breaker.open (10s), got 1s`},
		{"targets[0].disable_after", `"-1s"`, `targets[0].disable_after: must be 0s or more, got -1s`},
		{"targets[0].tls", `{"key": "k"}`, `targets[0].tls.key: needs tls.cert, too`},
		{"targets[0].tls", `{"cert": "c"}`, `targets[0].tls.cert: needs tls.key, too`},

		{"routes[0].queue", `null`, `routes[0].queue: is required`},
		{"routes[0].queue", `"queenbridge-dead.other"`, ""},
		{"routes[0].queue", `"queenbridge-large.other"`, `routes[0].queue: must not begin with queenbridge-large.: such queues are the bridge's own`},
		{"routes[0].target", `"other"`, `routes[0].target: no target is called "other": add it to targets`},
		{"routes[0].target", `"CI"`, `routes[0].target: no target is called "CI" (did you mean "ci"?)`},
		{"routes[0].target", `""`, `routes[0].target: is required: the name of a target`},
		{"routes[0].group", `"\u0007"`, `routes[0].group: must not hold control characters, got "\a"`},
		{"routes[0].subscribe", `"new"`, ""},
		{"routes[0].subscribe", `"2026-01-02T15:04:05Z"`, ""},
		{"routes[0].subscribe", `"yesterday"`, `routes[0].subscribe: must be all, new or an RFC 3339 time such as 2026-01-02T15:04:05Z, got "yesterday"`},
		{"routes[0].pattern", `"x"`, `routes[0].pattern: must be a map: an EventBridge event pattern`},
		{"routes[0].ordering", `"strict"`, `routes[0].ordering: must be none or partition, got "strict"`},
		{"routes[0].detach_after", `"-2s"`, `routes[0].detach_after: must be 0s or more, got -2s`},
		{"routes[0].batch", `{"size": 257}`, `routes[0].batch.size: must be at most 256, got 257`},
		{"routes[0].batch", `{"window": "-1s"}`, `routes[0].batch.window: must be 0s or more, got -1s`},
		{"routes[0].format", `"xml"`, `routes[0].format: must be passthrough, ndjson, cloudevents-binary, cloudevents-structured, cloudevents-batch or sqs, got "xml"`},
		{"routes[0].retry.max_attempts", `0`, `routes[0].retry.max_attempts: must be 1 or more, got 0`},
		{"routes[0].outcomes.retry", `["404", "4o4"]`, `routes[0].outcomes.retry[1]: must be a status code ("404"), a range ("500-599") or a class ("5xx"), got "4o4"`},
		{"routes[0].on_exhausted", `"drop"`, `routes[0].on_exhausted: must be dead_letter or pause, got "drop"`},
		{"routes[0].reply", `{"partition": "p"}`, `routes[0].reply.partition: has no effect without reply.queue`},
		{"routes[0].reply", `{"queue": "answers", "partition": "header:X-Key", "on_failure": true}`, ""},
		{"routes[0].reply", `{"queue": "answers", "partition": "query:key"}`, `routes[0].reply.partition: must be body:<path>, header:<name> or literal:<text>, got "query:key"`},
		{"routes[0].concurrency", `-1`, `routes[0].concurrency: must be 0 or more, got -1`},

		{"queues[0].name", `null`, `queues[0].name: is required`},
		{"queues[0].lease", `"1500ms"`, `queues[0].lease: must be whole seconds and at least 1s, got 1.5s`},
		{"queues[0].retention", `"0s"`, `queues[0].retention: must be whole seconds and at least 1s, got 0s`},
		{"queues[0].completed_retention", `"-1s"`, `queues[0].completed_retention: must be whole seconds and at least 0s, got -1s`},
		{"queues[0].dedup_window", `"-1s"`, `queues[0].dedup_window: must be whole seconds and at least 0s, got -1s`},
		{"queues[0].dedup_window", `"48h"`, `warning: queues[0].dedup_window: 48h is shorter than the 72h in which source "github" may resend an event: a late one is stored twice`},
		{"queues[0].retention", `"48h"`, `warning: queues[0].retention: 48h is shorter than the 72h in which source "github" may resend an event`},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			t.Parallel()
			doc := document(t, wholeDocument)
			setAt(t, &doc, tt.path, document(t, tt.value))
			c, problems := bridge.Decode(doc)
			if errs := errorsOf(problems); len(errs) > 0 {
				t.Fatalf("Decode: %v", errs)
			}
			got := strings.Join(texts(c.Validate()), "\n")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s = %s (-want +got):\n%s", tt.path, tt.value, diff)
			}
		})
	}
}

// pin is one of a key nobody has.
const pin = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="

func oauth2(tokenURL, scopes string) string {
	return fmt.Sprintf(`{"type": "oauth2", "token_url": %q, "client_id": "me", "client_secret": "s", "scopes": [%s]}`, tokenURL, scopes)
}

func TestValidateBetweenResources(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, list, value, want string }{
		{"sources of one name", "sources", `[{"name": "a", "scheme": "none"}, {"name": "a", "scheme": "none"}]`,
			`sources[1].name: another source is called "a": names are unique`},
		{"same scheme and queue", "sources", `[{"name": "a", "scheme": "none", "queue": "q"}, {"name": "b", "scheme": "none", "queue": "q", "partition": "literal:x"}]`,
			`warning: sources[1].queue: source "a" has the same scheme and queue, and partition is set: an event whose id both have is stored once`},
		{"a provider that resends longer than events are kept", "sources", `[{"name": "pay", "scheme": "aws-sns", "scheme_options": {"topics": ["arn:aws:sns:eu-west-1:1:t"]}}, {"name": "own", "scheme": "none", "queue": "pay"}]`,
			`warning: sources[0].queue: "pay" keeps events for 168h, but this source may resend one for 552h: add {name: pay, retention: 552h} under queues`},
		{"same scheme and queue, own lanes", "sources", `[{"name": "a", "scheme": "none", "queue": "q"}, {"name": "b", "scheme": "none", "queue": "q"}]`, ""},
		{"routes of one group", "routes", `[{"name": "a", "queue": "q", "target": "ci"}, {"name": "b", "queue": "q", "group": "a", "target": "ci"}]`,
			`routes[1].group: route "a" reads queue "q" as the same group "a": each would lose what the other got`},
		{"routes of one queue", "routes", `[{"name": "a", "queue": "q", "target": "ci"}, {"name": "b", "queue": "q", "target": "ci"}]`, ""},
		{"filter and pattern", "routes", `[{"name": "a", "queue": "q", "target": "ci", "filter": "true", "pattern": {}}]`,
			`routes[0].pattern: excludes filter: set one of them`},
		{"queues of one name", "queues", `[{"name": "q"}, {"name": "q"}]`, `queues[1].name: another entry is about queue "q": merge them`},
		{"queue nobody uses", "queues", `[{"name": "unused"}]`, ""},
		{"embedded and urls", "queen", `{"urls": ["http://a"], "embedded": "memory"}`, `queen.embedded: excludes queen.urls: set one of them`},
		{"authorization twice", "targets", `[{"name": "ci", "http": {"url": "http://x", "headers": {"authorization": "x"}}, "auth": {"type": "oidc", "token_file": "t"}}]`,
			`targets[0].http.headers.authorization: is set by auth type oidc: remove one`},
		{"api key twice", "targets", `[{"name": "ci", "http": {"url": "http://x", "headers": {"X-Key": "x"}}, "auth": {"type": "api_key", "header": "x-key", "value": "v"}}]`,
			`targets[0].http.headers.X-Key: is set by auth type api_key: remove one`},
		{"all of TLS", "targets", `[{"name": "ci", "http": {"url": "https://x"}, "tls": {"ca": "a", "cert": "c", "key": "k", "pins": ["` + pin + `"]}}]`, ""},
		{"pins without TLS", "targets", `[{"name": "ci", "http": {"url": "http://x"}, "tls": {"pins": ["` + pin + `"]}}]`, `targets[0].tls.pins: needs an http.url that begins with https://`},
		{"authority without TLS", "targets", `[{"name": "ci", "http": {"url": "http://x"}, "tls": {"ca": "a"}}]`, `targets[0].tls.ca: needs an http.url that begins with https://`},
		{"bad pin", "targets", `[{"name": "ci", "http": {"url": "https://x"}, "tls": {"pins": ["abc"]}}]`, `targets[0].tls.pins[0]: must be the base64 of the SHA-256 of the server's public key ` +
			`(44 characters, openssl x509 -pubkey -noout -in cert.pem | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64), got "abc"`},
		{"no targets", "targets", `[]`, `routes[0].target: no target is called "ci": add it to targets`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			doc := document(t, wholeDocument)
			doc.Set(tt.list, document(t, tt.value))
			c, _ := bridge.Decode(doc)
			if diff := cmp.Diff(tt.want, strings.Join(texts(c.Validate()), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateBatches(t *testing.T) {
	t.Parallel()
	const lambda = `[{"name": "ci", "http": {"url": "http://x"}}, {"name": "fn", "lambda": {"function": "f"}}, {"name": "event", "lambda": {"function": "f", "invoke": "event"}}]`
	for _, tt := range []struct{ name, route, want string }{
		{"batch", `"batch": {"size": 256, "window": "5m"}, "report_item_failures": true, "format": "sqs"`, ""},
		{"ordered batch", `"batch": {"size": 10}, "ordering": "partition", "format": "cloudevents-batch"`, ""},
		{"window of nothing", `"batch": {"window": "1s"}`, `routes[0].batch.window: has no effect with batch.size 1: set batch.size to 2 or more`},
		{"long window", `"batch": {"size": 2, "window": "6m"}`, `routes[0].batch.window: must be at most 5m: events keep their leases while they wait, got 6m`},
		{"window in order", `"batch": {"size": 2, "window": "1s"}, "ordering": "partition"`,
			`routes[0].batch.window: must be 0s with ordering: partition: a batch is what its partition holds, and no more of it can come while it waits`},
		{"binary", `"batch": {"size": 2}, "format": "cloudevents-binary"`,
			`routes[0].format: cloudevents-binary carries one event: set batch.size to 1, or format to cloudevents-batch`},
		{"structured", `"batch": {"size": 2}, "format": "cloudevents-structured"`,
			`routes[0].format: cloudevents-structured carries one event: set batch.size to 1, or format to cloudevents-batch`},
		{"one attempt", `"batch": {"size": 2}, "retry": {"max_attempts": 1}`,
			`routes[0].retry.max_attempts: must be 2 or more with batch.size above 1: after a batch failed each event needs an attempt of its own, or one would end for the fault of another`},
		{"reply", `"batch": {"size": 2}, "reply": {"queue": "answers"}`, `routes[0].reply.queue: needs batch.size 1: the answer to a batch is no reply to one event`},
		{"header of a batch", `"batch": {"size": 2}, "transform": {"headers": {"x-a": "'a'"}}`, `routes[0].transform.headers.x-a: has no effect: headers of events go with batch.size 1 and ` +
			`format passthrough or cloudevents-binary, and as attributes with format or payload sqs`},
		{"header of an event", `"transform": {"headers": {"x-a": "'a'"}}`, ""},
		{"header as an attribute", `"target": "fn", "batch": {"size": 2}, "transform": {"headers": {"x-a": "'a'"}}`, ""},
		{"content type of CloudEvents", `"batch": {"size": 2}, "format": "cloudevents-batch", "transform": {"headers": {"Content-Type": "'text/plain'"}}`, ""},
		{"lambda", `"target": "fn", "batch": {"size": 2}, "report_item_failures": true`, ""},
		{"lambda format", `"target": "fn", "format": "ndjson"`,
			`routes[0].format: is for HTTP targets: leave it out and set lambda.payload of target "fn" (sqs, raw or cloudevents)`},
		{"report of an asynchronous call", `"target": "event", "report_item_failures": true`,
			`routes[0].report_item_failures: has no effect on target "event": an asynchronous invoke has no answer; set its lambda.invoke to request_response`},
		{"reply of an asynchronous call", `"target": "event", "reply": {"queue": "answers"}`,
			`routes[0].reply.queue: gets nothing of target "event": an asynchronous invoke has no answer; set its lambda.invoke to request_response`},
		{"reply of a synchronous call", `"target": "fn", "reply": {"queue": "answers"}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			doc := document(t, wholeDocument)
			doc.Set("targets", document(t, lambda))
			route := `"target": "ci", ` + tt.route
			if strings.Contains(tt.route, `"target"`) {
				route = tt.route
			}
			doc.Set("routes", document(t, `[{"name": "r", "queue": "q", `+route+`}]`))
			c, _ := bridge.Decode(doc)
			if diff := cmp.Diff(tt.want, strings.Join(texts(c.Validate()), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// One mistake is one problem: what only follows from it is not reported.
func TestCheckReportsCausesOnly(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, path, value string
		want              []string
	}{
		{"unreadable value", "dispatch.max_in_flight", `"x"`, []string{`dispatch.max_in_flight: must be a whole number, got "x"`}},
		{"unreadable list", "sources[0].secrets", `"s"`, []string{`sources[0].secrets: must be a list, got "s"`}},
		{"unreadable map", "targets[0].http", `"http://x"`, []string{`targets[0].http: must be a map of fields, got "http://x"`}},
		{"misspelled", "targets[0]", `{"name": "ci", "htpp": {"url": "http://x"}}`, []string{`targets[0].htpp: is unknown (did you mean "http"?)`}},
		{"misspelled target name", "targets[0]", `{"naem": "ci", "http": {"url": "http://x"}}`, []string{`targets[0].naem: is unknown (did you mean "name"?)`}},
		{"misspelled targets", "", `{"targetz": [], "routes": [{"name": "r", "queue": "q", "target": "ci"}]}`,
			[]string{`targetz: is unknown (did you mean "targets"?)`}},
		{"misspelled route name", "routes[0]", `{"nam": "r", "queue": "q", "target": "ci"}`, []string{`routes[0].nam: is unknown (did you mean "name"?)`}},
		{"wrong and unbuilt", "queen.strategy", `"random"`, []string{`queen.strategy: must be affinity, round_robin or session, got "random"`}},
		{"warning and error at one place", "sources[0].secrets", `[" "]`, []string{
			`warning: sources[0].secrets[0]: is a literal secret: better write ${env:NAME} or ${file:PATH}`,
			`sources[0].secrets[0]: is only white space: set it, or remove the entry`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			doc := document(t, strings.ReplaceAll(wholeDocument, `["s"]`, `[]`))
			if tt.path != "sources[0].secrets" {
				setAt(t, &doc, "sources[0].scheme", document(t, `"none"`))
			}
			if list, isItem := strings.CutSuffix(tt.path, "[0]"); isItem {
				doc.Set(list, bridge.Node{Kind: bridge.NodeList, Items: []bridge.Node{document(t, tt.value)}})
			} else {
				setAt(t, &doc, tt.path, document(t, tt.value))
			}
			c, problems := bridge.Decode(doc)
			if diff := cmp.Diff(tt.want, texts(c.Check(problems))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAdminTokenOfTheEnvironment(t *testing.T) {
	t.Parallel()
	c := bridge.Defaults()
	c.Admin.Addr, c.Admin.EnvToken = "0.0.0.0:8081", "t"
	if problems := c.Check(nil); len(problems) > 0 {
		t.Errorf("a token is set, yet: %v", texts(problems))
	}
}
