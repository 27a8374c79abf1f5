package ingress_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/ingress"
	"github.com/queenbridge/queenbridge/signing"
)

// caller answers the calls that confirm.
type caller func(r *http.Request) (*http.Response, error)

func (c caller) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }

func answered(r *http.Request, status int, headers ...string) *http.Response {
	res := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("<ok/>")), Request: r}
	for i := 0; i < len(headers); i += 2 {
		res.Header.Set(headers[i], headers[i+1])
	}
	return res
}

const subscribeURL = "https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=" + snsTopic + "&Token=2336412f37"

// confirmation is SNS's request to confirm a subscription.
func confirmation(t *testing.T, s signer, address string) *signing.Request {
	t.Helper()
	r := &signing.Request{Method: http.MethodPost, Path: "/in/hook", Header: http.Header{"Content-Type": {"text/plain; charset=UTF-8"}}, Now: time.Now(),
		Body: []byte(`{"Type":"SubscriptionConfirmation","Message":"m","Token":"t","TopicArn":"` + snsTopic + `","SubscribeURL":"` + address + `"}`)}
	s.sign(t, r)
	return r
}

func confirming(t *testing.T, s bridge.Source, c caller) (*world, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewRegistry()
	return serve(t, ingress.Config{Sources: []bridge.Source{s}, Confirm: c, Metrics: reg}), reg
}

func TestASubscriptionIsConfirmedOnceInTheBackground(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan string, 8), make(chan struct{})
	s := sns(t)
	w, reg := confirming(t, s.source, func(r *http.Request) (*http.Response, error) {
		entered <- r.Method + " " + r.URL.String()
		<-leave
		return answered(r, 200), nil
	})
	res, body := w.sendSigned(t, confirmation(t, s, subscribeURL))
	if res.StatusCode != 200 || body != "" {
		t.Errorf("answered %d %q before the confirmation ended, want 200 and nothing", res.StatusCode, body)
	}
	if got := <-entered; got != "GET "+subscribeURL {
		t.Errorf("called %q", got)
	}
	close(leave)
	if err := w.stop(); err != nil { // waits for the call
		t.Error(err)
	}
	if got := metric(t, reg, "queenbridge_ingress_confirmations_total", "result", "confirmed"); got != 1 {
		t.Errorf("%v confirmations counted, want 1", got)
	}
	if strings.Contains(w.logs.String(), "2336412f37") {
		t.Error("the token is in the log")
	}
	if len(entered) != 0 || len(w.queen.Items()) != 0 {
		t.Errorf("%d more calls, %d events; want none", len(entered), len(w.queen.Items()))
	}
}

func TestAConfirmationFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	calls := make(chan string, 8)
	s := sns(t)
	w, reg := confirming(t, s.source, func(r *http.Request) (*http.Response, error) {
		calls <- r.URL.Host
		return answered(r, 302, "Location", "https://169.254.169.254/latest/meta-data"), nil
	})
	w.sendSigned(t, confirmation(t, s, subscribeURL))
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	if len(calls) != 1 {
		t.Errorf("%d calls, want 1", len(calls))
	}
	if got := metric(t, reg, "queenbridge_ingress_confirmations_total", "result", "failed"); got != 1 {
		t.Errorf("%v failures counted, want 1", got)
	}
}

func TestWhatIsNotConfirmed(t *testing.T) {
	t.Parallel()
	silent, s := sns(t, "confirm", false), sns(t)
	for name, tc := range map[string]struct {
		signer  signer
		address string
		forged  bool
		status  int
	}{
		"confirm: false": {silent, subscribeURL, false, 200},
		"another host":   {s, "https://sns.us-east-1.amazonaws.com.evil.example/", false, 400},
		"forged":         {s, subscribeURL, true, 401},
	} {
		w, _ := confirming(t, tc.signer.source, func(r *http.Request) (*http.Response, error) {
			t.Errorf("%s: called %s", name, r.URL.Host)
			return answered(r, 200), nil
		})
		r := confirmation(t, tc.signer, tc.address)
		if tc.forged {
			r.Body = []byte(strings.Replace(string(r.Body), `"Token":"t"`, `"Token":"u"`, 1))
		}
		if res, _ := w.sendSigned(t, r); res.StatusCode != tc.status {
			t.Errorf("%s: status %d, want %d", name, res.StatusCode, tc.status)
		}
		if err := w.stop(); err != nil {
			t.Error(err)
		}
	}
}

// Whoever may sign for a topic must not make us call without end.
func TestConfirmationsAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	leave := make(chan struct{})
	s := sns(t)
	w, _ := confirming(t, s.source, func(r *http.Request) (*http.Response, error) { <-leave; return answered(r, 200), nil })
	r, statuses := confirmation(t, s, subscribeURL), map[int]int{}
	for range 12 {
		res, _ := w.sendSigned(t, r)
		statuses[res.StatusCode]++
	}
	close(leave)
	if statuses[200] != 8 || statuses[503] != 4 {
		t.Errorf("statuses %v, want 8 of 200 and 4 of 503", statuses)
	}
}
