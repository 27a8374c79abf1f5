package configfile

import (
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/kelseyhightower/envconfig"

	"github.com/queenbridge/queenbridge/bridge"
)

const envPrefix = "QUEENBRIDGE"

// text is a variable as it is set: package bridge reads it, with the rules and
// messages of the file.
type text struct{ text string }

// Decode takes the text for envconfig.
func (t *text) Decode(value string) error {
	t.text = value
	return nil
}

// list is a variable that holds a list, comma-separated.
type list struct{ text }

// environment are the variables of the process settings: QUEENBRIDGE_ and the
// path in upper case. split_words instead of explicit names, because envconfig
// would also take an explicit name without the prefix: QUEEN_TOKEN.
type environment struct {
	LogLevel               text `split_words:"true" path:"log.level"`
	LogFormat              text `split_words:"true" path:"log.format"`
	StopTimeout            text `split_words:"true" path:"stop_timeout"`
	QueenUrls              list `split_words:"true" path:"queen.urls"`
	QueenEmbedded          text `split_words:"true" path:"queen.embedded"`
	QueenEmbeddedAddr      text `split_words:"true" path:"queen.embedded_addr"`
	QueenToken             text `split_words:"true" path:"queen.token"`
	QueenStrategy          text `split_words:"true" path:"queen.strategy"`
	QueenTlsCa             text `split_words:"true" path:"queen.tls.ca"` //nolint:revive // names the variable
	IngressAddr            text `split_words:"true" path:"ingress.addr"`
	IngressTlsCert         text `split_words:"true" path:"ingress.tls.cert"`      //nolint:revive // names the variable
	IngressTlsKey          text `split_words:"true" path:"ingress.tls.key"`       //nolint:revive // names the variable
	IngressTlsClientCa     text `split_words:"true" path:"ingress.tls.client_ca"` //nolint:revive // names the variable
	IngressTrustedProxies  list `split_words:"true" path:"ingress.trusted_proxies"`
	IngressMaxInFlight     text `split_words:"true" path:"ingress.max_in_flight"`
	IngressEnqueueTimeout  text `split_words:"true" path:"ingress.enqueue_timeout"`
	IngressAcceptBuffered  text `split_words:"true" path:"ingress.accept_buffered"`
	IngressBatchMaxItems   text `split_words:"true" path:"ingress.batch.max_items"`
	IngressBatchMaxBytes   text `split_words:"true" path:"ingress.batch.max_bytes"`
	IngressBatchMaxPending text `split_words:"true" path:"ingress.batch.max_pending"`
	IngressBatchLinger     text `split_words:"true" path:"ingress.batch.linger"`
	IngressSpoolDir        text `split_words:"true" path:"ingress.spool.dir"`
	IngressSpoolMaxBytes   text `split_words:"true" path:"ingress.spool.max_bytes"`
	DispatchMaxInFlight    text `split_words:"true" path:"dispatch.max_in_flight"`
	DispatchTraces         text `split_words:"true" path:"dispatch.traces"`
	AdminAddr              text `split_words:"true" path:"admin.addr"`
	AdminConsole           text `split_words:"true" path:"admin.console"`

	// These are no fields of the file.
	Config        text `split_words:"true"`
	AdminToken    text `split_words:"true"`
	EncryptionKey text `split_words:"true"`
}

func readEnvironment() (environment, error) {
	var e environment
	if err := envconfig.Process(envPrefix, &e); err != nil {
		return e, fmt.Errorf("read environment: %w", err)
	}
	return e, nil
}

// layOver puts what is set over the document. Where Queen is, is one word: the
// environment's drops the file's.
func (e environment) layOver(doc *bridge.Node) {
	if e.QueenUrls.text.text != "" || e.QueenEmbedded.text != "" {
		doc.Remove("queen.urls")
		doc.Remove("queen.embedded")
	}
	v := reflect.ValueOf(e)
	for i := range v.NumField() {
		path := v.Type().Field(i).Tag.Get("path")
		if path == "" {
			continue
		}
		origin := envPrefix + "_" + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
		if n, set := settingNode(v.Field(i).Interface(), origin); set {
			doc.Set(path, n)
		}
	}
}

// settingNode is the node of one variable; an empty one is as good as none.
func settingNode(variable any, origin string) (n bridge.Node, set bool) {
	l, isList := variable.(list)
	if !isList {
		value := variable.(text).text
		return bridge.Node{Kind: bridge.NodeString, Text: value, Origin: origin}, value != ""
	}
	n = bridge.Node{Kind: bridge.NodeList, Origin: origin}
	for item := range strings.SplitSeq(l.text.text, ",") {
		n.Items = append(n.Items, bridge.Node{Kind: bridge.NodeString, Text: strings.TrimSpace(item), Origin: origin})
	}
	return n, l.text.text != ""
}

// keys reads the base64 of 32 bytes, comma-separated where a key is being
// replaced.
func (e environment) keys() ([][]byte, error) {
	if e.EncryptionKey.text == "" {
		return nil, nil
	}
	var keys [][]byte
	for encoded := range strings.SplitSeq(e.EncryptionKey.text, ",") {
		key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
		if err != nil || len(key) != 32 {
			return nil, errors.New(`must be the base64 of 32 bytes (or several, comma-separated, the newest first): make one with "openssl rand -base64 32"`)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
