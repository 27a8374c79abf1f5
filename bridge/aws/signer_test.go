package aws_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge/aws"
)

func signer(t *testing.T, c aws.SignerConfig) *aws.Signer {
	t.Helper()
	s, err := aws.NewSigner(t.Context(), c)
	if err != nil {
		t.Fatalf("NewSigner(%+v): %v", c, err)
	}
	return s
}

func request(t *testing.T, method, target, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// vectorTime and the keys of TestMain are those of AWS's published test suite
// for Signature Version 4.
var vectorTime = time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)

// TestSignaturesAreThoseAWSPublishes: the test suite of Signature Version 4
// (get-vanilla, post-vanilla, get-vanilla-query-order-key-case) and the example
// of the IAM user guide.
func TestSignaturesAreThoseAWSPublishes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ service, method, url, contentType, want string }{
		{"service", "GET", "https://example.amazonaws.com/", "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"service", "POST", "https://example.amazonaws.com/", "", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		{"service", "GET", "https://example.amazonaws.com/?Param2=value2&Param1=value1", "", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		{"iam", "GET", "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", "application/x-www-form-urlencoded; charset=utf-8", "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"},
	} {
		r := request(t, tt.method, tt.url, "")
		if tt.contentType != "" {
			r.Header.Set("Content-Type", tt.contentType)
		}
		if err := signer(t, aws.SignerConfig{Service: tt.service, Region: "us-east-1"}).Sign(t.Context(), r, nil, vectorTime); err != nil {
			t.Fatal(err)
		}
		if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+tt.want) {
			t.Errorf("%s %s: Authorization %q, want the signature %s", tt.method, tt.url, got, tt.want)
		}
	}
}

// TestASignatureHoldsForTheBytesAsTheyAre: recomputed by a second
// implementation, from what arrives at a server.
func TestASignatureHoldsForTheBytesAsTheyAre(t *testing.T) {
	t.Parallel()
	var problem atomic.Pointer[string]
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text := checkSignature(r, readAll(r)); text != "" {
			problem.Store(&text)
		}
	}))
	t.Cleanup(srv.Close)
	s := signer(t, aws.SignerConfig{Service: "lambda", Region: "eu-west-1"})
	for _, path := range []string{"/", "/in/a%20b/%C3%A9?x=2&x=1&y=%2F&empty", "/a//b/../c"} {
		for _, body := range []string{"", "{}", "\x00\xff", " {\"a\" : 1e400}\n"} {
			r := request(t, "POST", srv.URL+path, body)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer of-the-event")
			r.Header.Set("X-Amz-Security-Token", "of-the-event")
			r.Header.Add("X-Twice", "one")
			r.Header.Add("X-Twice", "two  words")
			if err := s.Sign(t.Context(), r, []byte(body), time.Now()); err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if p := problem.Swap(nil); p != nil {
				t.Errorf("%s with %q: %s", path, body, *p)
			}
		}
	}
}

func readAll(r *http.Request) string {
	body, _ := io.ReadAll(r.Body)
	return string(body)
}

// checkSignature verifies a request as AWS documents it ("Create a signed AWS
// API request"), with none of the signer's code. "" means it holds.
func checkSignature(r *http.Request, body string) string {
	fields := map[string]string{}
	for part := range strings.SplitSeq(strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 "), ", ") {
		name, value, _ := strings.Cut(part, "=")
		fields[name] = value
	}
	scope := strings.SplitN(fields["Credential"], "/", 2)
	if len(scope) != 2 || scope[0] != "AKIDEXAMPLE" || r.Header.Get("X-Amz-Security-Token") != "" {
		return fmt.Sprintf("credential %q, token %q", fields["Credential"], r.Header.Get("X-Amz-Security-Token"))
	}
	var headers strings.Builder
	for name := range strings.SplitSeq(fields["SignedHeaders"], ";") {
		value := strings.Join(r.Header.Values(name), ",")
		if name == "host" {
			value = r.Host
		}
		if name == "content-length" {
			value = fmt.Sprint(r.ContentLength)
		}
		headers.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	// Every service but S3 encodes the path a second time.
	path := strings.ReplaceAll(url.PathEscape(r.URL.EscapedPath()), "%2F", "/")
	hash := sha256.Sum256([]byte(body))
	canonical := strings.Join([]string{r.Method, path, canonicalQuery(r.URL.RawQuery), headers.String(), fields["SignedHeaders"], hex.EncodeToString(hash[:])}, "\n")
	hash = sha256.Sum256([]byte(canonical))
	text := strings.Join([]string{"AWS4-HMAC-SHA256", r.Header.Get("X-Amz-Date"), scope[1], hex.EncodeToString(hash[:])}, "\n")
	key := []byte("AWS4wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
	for step := range strings.SplitSeq(scope[1], "/") {
		key = mac(key, step)
	}
	want := hex.EncodeToString(mac(key, text))
	if want != fields["Signature"] {
		return "the signature does not hold for\n" + canonical
	}
	return ""
}

func mac(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

func canonicalQuery(raw string) string {
	if raw == "" {
		return ""
	}
	pairs := strings.Split(raw, "&")
	for i, pair := range pairs {
		if !strings.Contains(pair, "=") {
			pairs[i] = pair + "="
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

func TestTheRegionIsThatOfTheHost(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]string{
		"https://abc123.lambda-url.eu-central-1.on.aws/x":           "eu-central-1",
		"https://id.execute-api.ap-southeast-2.amazonaws.com/stage": "ap-southeast-2",
		"https://sqs.us-gov-west-1.amazonaws.com":                   "us-gov-west-1",
		"https://sqs.cn-north-1.amazonaws.com.cn":                   "cn-north-1",
		"https://iam.amazonaws.com":                                 "us-east-1", // of the environment
		"https://functions.example.com":                             "us-east-1",
	} {
		r := request(t, "POST", endpoint, "{}")
		if err := signer(t, aws.SignerConfig{Service: "lambda", Endpoint: endpoint}).Sign(t.Context(), r, []byte("{}"), vectorTime); err != nil {
			t.Fatal(err)
		}
		if got := r.Header.Get("Authorization"); !strings.Contains(got, "/20150830/"+want+"/lambda/aws4_request") {
			t.Errorf("%s is signed as %q, want the region %s", endpoint, got, want)
		}
	}
}

func TestASignerNeedsServiceAndRegion(t *testing.T) {
	if _, err := aws.NewSigner(t.Context(), aws.SignerConfig{Region: "us-east-1"}); err == nil {
		t.Error("NewSigner without a service made one")
	}
	t.Setenv("AWS_REGION", "")
	_, err := aws.NewSigner(t.Context(), aws.SignerConfig{Service: "lambda", Endpoint: "https://example.com"})
	if err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("NewSigner without a region = %v, want the remedy", err)
	}
}

// TestARoleIsAssumedOnceForAllSigners: its credentials are kept until a minute
// before they expire.
func TestARoleIsAssumedOnceForAllSigners(t *testing.T) {
	var calls atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		form, _ := url.ParseQuery(readAll(r))
		if form.Get("Action") != "AssumeRole" || form.Get("RoleArn") != "arn:aws:iam::123456789012:role/caller" || form.Get("RoleSessionName") != "queenbridge" {
			t.Errorf("STS got %v", form)
		}
		type credentials struct{ AccessKeyId, SecretAccessKey, SessionToken, Expiration string }
		_ = xml.NewEncoder(w).Encode(struct {
			XMLName xml.Name    `xml:"AssumeRoleResponse"`
			Given   credentials `xml:"AssumeRoleResult>Credentials"`
		}{Given: credentials{"ASIAROLE", "role-key", "role-token", time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}})
	}))
	t.Cleanup(srv.Close)
	t.Setenv("AWS_ENDPOINT_URL", srv.URL)
	session := new(aws.Session)
	for range 3 {
		r := request(t, "POST", "https://abc.lambda-url.eu-west-1.on.aws/", "{}")
		s := signer(t, aws.SignerConfig{Session: session, Service: "lambda", Region: "eu-west-1", AssumeRole: "arn:aws:iam::123456789012:role/caller"})
		if err := s.Sign(t.Context(), r, []byte("{}"), time.Now()); err != nil {
			t.Fatal(err)
		}
		if got := r.Header.Get("Authorization"); !strings.Contains(got, "Credential=ASIAROLE/") || r.Header.Get("X-Amz-Security-Token") != "role-token" {
			t.Errorf("Authorization %q, token %q; want the role's", got, r.Header.Get("X-Amz-Security-Token"))
		}
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("the role was assumed %d times, want once", n)
	}
}

// TestWithoutCredentialsNothingIsSigned and the error is no secret.
func TestWithoutCredentialsNothingIsSigned(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	r := request(t, "POST", "https://example.com/", "{}")
	err := signer(t, aws.SignerConfig{Service: "lambda", Region: "eu-west-1"}).Sign(t.Context(), r, []byte("{}"), time.Now())
	if err == nil || !strings.HasPrefix(err.Error(), "find AWS credentials: ") || r.Header.Get("Authorization") != "" {
		t.Errorf("Sign = %v with Authorization %q", err, r.Header.Get("Authorization"))
	}
}
