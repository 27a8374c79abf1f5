package main

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/queenbridge/queenbridge/signing"
)

// urlChange is a URL that the provider may have signed instead.
type urlChange struct{ text, url, query, method string }

// urlChanges vary scheme, host, port, slash, query and method.
func urlChanges(public string, r *signing.Request) []urlChange {
	u, err := url.Parse(public)
	if public == "" || err != nil {
		return nil
	}
	l := urlList{base: u, request: r}
	l.add("the scheme differs", func(o *url.URL) { o.Scheme = otherScheme[o.Scheme] })
	l.add("a slash at the end is missing in public_url", func(o *url.URL) { *o = *o.JoinPath("/") })
	l.add("public_url has a slash at its end too many", func(o *url.URL) { o.Path, o.RawPath = strings.TrimSuffix(o.Path, "/"), "" })
	l.add("the provider signs the default port", func(o *url.URL) { o.Host = net.JoinHostPort(o.Hostname(), portOf(o)) })
	l.add("the port is not signed", func(o *url.URL) { o.Host = o.Hostname() })
	l.add("the path differs", func(o *url.URL) { o.Path, o.RawPath = r.Path, "" })
	l.add("www. belongs to the host", func(o *url.URL) { o.Host = "www." + o.Host })
	l.add("www. does not belong to the host", func(o *url.URL) { o.Host = strings.TrimPrefix(o.Host, "www.") })
	l.hosts()
	return append(l.changes, lineChanges(public, r)...)
}

// urlList gathers changes of one URL.
type urlList struct {
	base    *url.URL
	request *signing.Request
	changes []urlChange
}

func (l *urlList) add(text string, change func(*url.URL)) {
	other := *l.base
	change(&other)
	if other != *l.base {
		l.changes = append(l.changes, urlChange{text + ": public_url should be " + other.String(), other.String(), l.request.RawQuery, l.request.Method})
	}
}

// hosts tries the hosts that arrived.
func (l *urlList) hosts() {
	for _, header := range []string{"X-Forwarded-Host", "Host"} {
		host := forwarded(l.request.Header, header)
		if host == "" {
			continue
		}
		proto := forwarded(l.request.Header, "X-Forwarded-Proto")
		l.add("the host differs ("+header+")", func(o *url.URL) { o.Host = host })
		l.add("host and path differ ("+header+")", func(o *url.URL) { o.Host, o.Path, o.RawPath = host, l.request.Path, "" })
		l.add("scheme and host differ ("+header+")", func(o *url.URL) { o.Scheme, o.Host = cmp.Or(proto, otherScheme[o.Scheme]), host })
		l.add("scheme, host and path differ ("+header+")", func(o *url.URL) {
			o.Scheme, o.Host, o.Path, o.RawPath = cmp.Or(proto, otherScheme[o.Scheme]), host, l.request.Path, ""
		})
	}
}

// lineChanges vary the query and the method.
func lineChanges(public string, r *signing.Request) []urlChange {
	var all []urlChange
	if r.RawQuery != "" {
		all = append(all, urlChange{"the query is not signed: was it added on the way?", public, "", r.Method})
		if q, err := url.ParseQuery(r.RawQuery); err == nil {
			all = append(all, urlChange{"the query was re-ordered or encoded again on the way", public, q.Encode(), r.Method})
		}
	}
	for _, method := range []string{"GET", "POST", "PUT"} {
		if method != r.Method {
			all = append(all, urlChange{"the method differs: " + method + " was signed (a redirect changes it)", public, r.RawQuery, method})
		}
	}
	return all
}

// forwarded is the first value of a header that proxies write.
func forwarded(h http.Header, name string) string {
	value, _, _ := strings.Cut(h.Get(name), ",")
	return strings.TrimSpace(value)
}

func portOf(u *url.URL) string { return cmp.Or(u.Port(), defaultPorts[u.Scheme]) }

var (
	defaultPorts = map[string]string{"http": "80", "https": "443"}
	otherScheme  = map[string]string{"http": "https", "https": "http"}
)
