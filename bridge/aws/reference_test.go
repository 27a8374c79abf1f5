package aws_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge/aws"
)

// store is a fake of Secrets Manager and Parameter Store: their JSON protocol
// for the two calls the bridge makes.
type store struct {
	mu      sync.Mutex
	secrets map[string]string
	params  map[string]string
	calls   []string // operation, region, id
}

func serveStore(t *testing.T) *store {
	t.Helper()
	s := &store{secrets: map[string]string{}, params: map[string]string{}}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	t.Setenv("AWS_ENDPOINT_URL", srv.URL)
	return s
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var asked struct {
		SecretId, Name string
		WithDecryption bool
	}
	_ = json.NewDecoder(r.Body).Decode(&asked)
	scope := strings.Split(r.Header.Get("Authorization"), "/")
	region := "unsigned"
	if len(scope) > 2 {
		region = scope[2]
	}
	target := r.Header.Get("X-Amz-Target")
	s.calls = append(s.calls, target+" "+region+" "+asked.SecretId+asked.Name)
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	switch value, ok := s.secrets[asked.SecretId]; {
	case target == "secretsmanager.GetSecretValue" && ok && strings.HasPrefix(value, "binary:"):
		answer(w, 200, map[string]any{"SecretBinary": "AAEC"})
	case target == "secretsmanager.GetSecretValue" && ok:
		answer(w, 200, map[string]any{"SecretString": value})
	case target == "AmazonSSM.GetParameter" && s.params[asked.Name] != "" && asked.WithDecryption:
		answer(w, 200, map[string]any{"Parameter": map[string]any{"Name": asked.Name, "Type": "SecureString", "Value": s.params[asked.Name]}})
	case strings.Contains(asked.SecretId, "forbidden"):
		answer(w, 400, map[string]any{"__type": "AccessDeniedException", "Message": "User: arn:aws:iam::1:user/u is not authorized"})
	default:
		answer(w, 400, map[string]any{"__type": "ResourceNotFoundException", "Message": "there is none"})
	}
}

func answer(w http.ResponseWriter, status int, v any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

const database = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:database-AbCdEf"

func TestSecretsAndParametersAreRead(t *testing.T) {
	s := serveStore(t)
	s.secrets[database] = `{"password":"p\"w ü","port":5432,"tls":true,"hosts":["a"],"none":null}`
	s.secrets["plain"] = "just text\n"
	s.params["/bridge/token"] = "t0ken"
	s.params["arn:aws:ssm:ap-south-1:123456789012:parameter/other"] = "far"
	r := aws.NewReferences(new(aws.Session))
	for _, tt := range []struct {
		read func(context.Context, string) (string, error)
		name string
		want string
	}{
		{r.SecretsManager, database + "#password", "p\"w ü"},
		{r.SecretsManager, database + "#port", "5432"},
		{r.SecretsManager, database + "#tls", "true"},
		{r.SecretsManager, database, s.secrets[database]},
		{r.SecretsManager, "plain", "just text\n"},
		{r.SSM, "/bridge/token", "t0ken"},
		{r.SSM, "/bridge/token", "t0ken"},
		{r.SSM, "arn:aws:ssm:ap-south-1:123456789012:parameter/other", "far"},
	} {
		if got, err := tt.read(t.Context(), tt.name); got != tt.want || err != nil {
			t.Errorf("%s = %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
	want := []string{
		"secretsmanager.GetSecretValue eu-west-1 " + database, "secretsmanager.GetSecretValue us-east-1 plain",
		"AmazonSSM.GetParameter us-east-1 /bridge/token", "AmazonSSM.GetParameter ap-south-1 arn:aws:ssm:ap-south-1:123456789012:parameter/other",
	}
	if got := strings.Join(s.calls, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("AWS was asked\n%s\nwant each once, in its own region:\n%s", got, strings.Join(want, "\n"))
	}
}

// TestReferencesFailByName: an error says which reference and why, and holds
// nothing of a secret.
func TestReferencesFailByName(t *testing.T) {
	s := serveStore(t)
	s.secrets[database] = `{"password":"hunter2","hosts":["hunter2"],"none":null}`
	s.secrets["text"], s.secrets["blob"] = "hunter2 {", "binary:"
	r := aws.NewReferences(new(aws.Session))
	for _, tt := range []struct {
		read       func(context.Context, string) (string, error)
		name, want string
	}{
		{r.SecretsManager, database + "#user", `has no key "user"`},
		{r.SecretsManager, database + "#hosts", `key "hosts" holds no string`},
		{r.SecretsManager, database + "#none", `key "none" holds no string`},
		{r.SecretsManager, "text#password", "is no JSON object"},
		{r.SecretsManager, "blob", "binary data"},
		{r.SecretsManager, "missing", "ResourceNotFoundException: there is none"},
		{r.SecretsManager, "forbidden", "AccessDeniedException: User: arn:aws:iam::1:user/u"},
		{r.SecretsManager, "#key", "ARN#KEY"},
		{r.SecretsManager, "id#", "ARN#KEY"},
		{r.SSM, "", "aws-ssm:NAME"},
		{r.SSM, "/missing", "ResourceNotFoundException"},
	} {
		got, err := tt.read(t.Context(), tt.name)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") || got != "" {
			t.Errorf("%q = %q, %v; want an error with %q", tt.name, got, err, tt.want)
		}
	}
}

// TestANewLoadSeesARotatedSecret: references of one load agree, those of the
// next are read again.
func TestANewLoadSeesARotatedSecret(t *testing.T) {
	s := serveStore(t)
	s.params["token"] = "old"
	session := new(aws.Session)
	first := aws.NewReferences(session)
	for _, want := range []string{"old", "new"} {
		if got, err := first.SSM(t.Context(), "token"); got != "old" || err != nil {
			t.Errorf("the first load reads %q, %v", got, err)
		}
		if got, err := aws.NewReferences(session).SSM(t.Context(), "token"); got != want || err != nil {
			t.Errorf("the next load reads %q, %v; want %q", got, err, want)
		}
		s.params["token"] = "new"
	}
}

// TestAnAWSThatHangsEndsWithTheContext.
func TestAnAWSThatHangsEndsWithTheContext(t *testing.T) {
	end := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(end) })
	t.Setenv("AWS_ENDPOINT_URL", srv.URL)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err := aws.NewReferences(new(aws.Session)).SSM(ctx, "token")
	if err == nil || !strings.Contains(err.Error(), "no answer from AWS in time") || time.Since(begun) > 5*time.Second {
		t.Errorf("SSM = %v after %v", err, time.Since(begun))
	}
}
