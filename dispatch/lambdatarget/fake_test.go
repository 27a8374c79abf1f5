package lambdatarget_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/dispatch"
	"github.com/queenbridge/queenbridge/dispatch/lambdatarget"
	"github.com/queenbridge/queenbridge/dispatch/sendertest"
)

// fakeLambda is the Invoke route of Lambda as its API reference describes it.
// The emulator of the runtime has none of its error signalling.
type fakeLambda struct {
	t      *testing.T
	url    string
	answer func(ctx context.Context, body []byte) fakeAnswer

	mu    sync.Mutex
	calls []fakeCall
}

type fakeCall struct {
	path, query, kind, context, region string
	body                               string
}

// fakeAnswer is one answer of Lambda: errorType makes it an error of Lambda's,
// functionError one of the function's.
type fakeAnswer struct {
	status                   int
	errorType, functionError string
	body                     string
	header                   map[string]string
	drop                     bool
	cutAfter                 int // bytes of the body; then the connection ends
}

func serveLambda(t *testing.T, answer func(context.Context, []byte) fakeAnswer) *fakeLambda {
	t.Helper()
	f := &fakeLambda{t: t, answer: answer}
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	f.url = srv.URL
	return f
}

func (f *fakeLambda) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	scope := strings.Split(r.Header.Get("Authorization")+"////", "/")
	f.mu.Lock()
	f.calls = append(f.calls, fakeCall{r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("X-Amz-Invocation-Type"), r.Header.Get("X-Amz-Client-Context"), scope[2], string(body)})
	f.mu.Unlock()
	a := f.answer(r.Context(), body)
	if a.drop {
		panic(http.ErrAbortHandler)
	}
	for name, value := range a.header {
		w.Header().Set(name, value)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amz-Executed-Version", "7")
	if a.errorType != "" {
		w.Header().Set("X-Amzn-ErrorType", a.errorType)
		if a.body == "" {
			a.body = `{"Type":"User","Message":"the message of ` + a.errorType + `"}`
		}
	}
	if a.functionError != "" {
		w.Header().Set("X-Amz-Function-Error", a.functionError)
	}
	w.WriteHeader(a.status)
	if a.cutAfter > 0 {
		_, _ = io.WriteString(w, a.body[:a.cutAfter])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(w, a.body)
}

func (f *fakeLambda) seen() []fakeCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]fakeCall(nil), f.calls...)
}

// always answers the same.
func always(a fakeAnswer) func(context.Context, []byte) fakeAnswer {
	return func(context.Context, []byte) fakeAnswer { return a }
}

// awsConfig is the AWS environment of a test.
func awsConfig(_ context.Context, region, _ string) (aws.Config, error) {
	return aws.Config{Region: region, Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "key-of-nobody", "")}, nil
}

func target(endpoint string, change func(*bridge.LambdaTarget)) bridge.Target {
	l := &bridge.LambdaTarget{Function: "thumb", Region: "eu-west-1", Endpoint: endpoint}
	if change != nil {
		change(l)
	}
	return bridge.Target{Name: "thumbnailer", Lambda: l, Concurrency: 50}
}

func newSender(t *testing.T, target bridge.Target) *lambdatarget.Sender {
	t.Helper()
	s, err := lambdatarget.New(t.Context(), target, lambdatarget.Options{Config: awsConfig})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func request(body string) *bridge.Request {
	return &bridge.Request{
		DeliveryID: "dlv_1", Attempt: 3, Queue: "images", Partition: "album-7", Body: []byte(body),
		ContentType: "application/json", Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// TestSender: what any Sender must do. The statuses are Lambda's own.
func TestSender(t *testing.T) {
	t.Parallel()
	sendertest.Run(t, func(t *testing.T, fn sendertest.Function) dispatch.Sender {
		if fn == nil {
			return newSender(t, target("http://"+closedAddr(t), nil))
		}
		f := serveLambda(t, func(ctx context.Context, body []byte) fakeAnswer {
			a := fn(ctx, body)
			out := fakeAnswer{status: a.Status, body: string(a.Body), drop: a.Drop}
			if a.Cut {
				out.cutAfter, out.header = len(a.Body), map[string]string{"Content-Length": fmt.Sprint(len(a.Body) + 10)}
			}
			return out
		})
		return newSender(t, target(f.url, nil))
	})
}

// closedAddr is an address nobody listens on.
func closedAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// clientContext reads what a function sees beside its payload.
func clientContext(t *testing.T, text string) map[string]string {
	t.Helper()
	var doc struct{ Custom map[string]string }
	if err := json.Unmarshal(decode64(t, text), &doc); err != nil {
		t.Fatalf("client context %q: %v", text, err)
	}
	return doc.Custom
}
