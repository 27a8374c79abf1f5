package aws

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awsarn "github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go"
)

// Bounds of looking secrets up: of one call, its repeats included, and of all
// of one load. An AWS that is away must not hold a start or a reload for ever.
const (
	callTime = 10 * time.Second
	loadTime = 30 * time.Second
)

// References looks up the secrets that one load of a configuration refers to:
// each once, however often it is named. Make one for each load, so that a
// reload sees what changed. Not safe for concurrent use.
type References struct {
	session *Session
	until   time.Time // zero: nothing was looked up yet
	secrets map[string]answer[*secretsmanager.GetSecretValueOutput]
	params  map[string]answer[string]
}

// answer is what a look-up found, or why it found nothing.
type answer[T any] struct {
	value T
	err   error
}

// NewReferences makes the references of one load. It calls nobody.
func NewReferences(s *Session) *References {
	return &References{
		session: s, params: make(map[string]answer[string]),
		secrets: make(map[string]answer[*secretsmanager.GetSecretValueOutput]),
	}
}

// SecretsManager resolves what stands behind ${aws-secretsmanager: the ARN or
// name of a secret and, after #, the key of a JSON object in it. Without a key
// it is the whole secret. The region is the ARN's, else the environment's.
func (r *References) SecretsManager(ctx context.Context, reference string) (string, error) {
	id, key, keyed := strings.Cut(reference, "#")
	if id == "" || keyed && key == "" {
		return "", errors.New("write ${aws-secretsmanager:ARN#KEY}")
	}
	found, known := r.secrets[id]
	if !known {
		found.value, found.err = r.secret(ctx, id)
		r.secrets[id] = found
	}
	if found.err != nil {
		return "", fmt.Errorf("read secret %s: %w", id, found.err)
	}
	text, err := textOf(found.value, key)
	if err != nil {
		return "", fmt.Errorf("read secret %s: %w", reference, err)
	}
	return text, nil
}

func (r *References) secret(ctx context.Context, id string) (*secretsmanager.GetSecretValueOutput, error) {
	c, ctx, cancel, err := r.open(ctx, id)
	defer cancel()
	if err != nil {
		return nil, err
	}
	out, err := secretsmanager.NewFromConfig(c).GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &id})
	return out, reasonOf(ctx, err)
}

// SSM resolves what stands behind ${aws-ssm: the name or ARN of a parameter of
// Parameter Store, with a version or label where one is meant (name:3). A
// SecureString is decrypted. The region is the ARN's, else the environment's.
func (r *References) SSM(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "", errors.New("write ${aws-ssm:NAME}")
	}
	found, known := r.params[name]
	if !known {
		found.value, found.err = r.parameter(ctx, name)
		r.params[name] = found
	}
	if found.err != nil {
		return "", fmt.Errorf("read parameter %s: %w", name, found.err)
	}
	return found.value, nil
}

func (r *References) parameter(ctx context.Context, name string) (string, error) {
	c, ctx, cancel, err := r.open(ctx, name)
	defer cancel()
	if err != nil {
		return "", err
	}
	out, err := ssm.NewFromConfig(c).GetParameter(ctx, &ssm.GetParameterInput{Name: &name, WithDecryption: new(true)})
	if err != nil {
		return "", reasonOf(ctx, err)
	}
	if out.Parameter == nil || out.Parameter.Value == nil {
		return "", errors.New("AWS answered without a value")
	}
	return *out.Parameter.Value, nil
}

// open bounds one call and finds its configuration.
func (r *References) open(ctx context.Context, id string) (sdk.Config, context.Context, context.CancelFunc, error) {
	if r.until.IsZero() {
		r.until = time.Now().Add(loadTime)
	}
	until := time.Now().Add(callTime)
	if r.until.Before(until) {
		until = r.until
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	region := ""
	if parsed, err := awsarn.Parse(id); err == nil {
		region = parsed.Region
	}
	c, err := r.session.Config(ctx, region, "")
	if err == nil && c.Region == "" {
		err = errors.New("the region is not known: write the ARN, or set AWS_REGION")
	}
	return c, ctx, cancel, err
}

// textOf is a secret's text, or the member of its JSON object that key names.
func textOf(secret *secretsmanager.GetSecretValueOutput, key string) (string, error) {
	switch {
	case secret.SecretString == nil:
		return "", errors.New("it holds binary data, which no setting can be: store it as text")
	case key == "":
		return *secret.SecretString, nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(*secret.SecretString), &members) != nil {
		// The error of encoding/json may quote the secret.
		return "", errors.New("it is no JSON object, so it has no key: leave #KEY out to use all of it")
	}
	return member(members, key)
}

func member(members map[string]json.RawMessage, key string) (string, error) {
	raw, ok := members[key]
	if !ok {
		return "", fmt.Errorf("it has no key %q", key)
	}
	var text string
	switch {
	case json.Unmarshal(raw, &text) == nil && raw[0] == '"':
		return text, nil
	case raw[0] == '{' || raw[0] == '[' || raw[0] == 'n':
		return "", fmt.Errorf("its key %q holds no string", key)
	}
	return string(raw), nil // a number, true or false
}

// reasonOf is an error of AWS as an operator needs it: the code and AWS's
// sentence, which never holds a value.
func reasonOf(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var refused smithy.APIError
	if errors.As(err, &refused) {
		return fmt.Errorf("%s: %s", refused.ErrorCode(), refused.ErrorMessage())
	}
	if ctx.Err() != nil {
		return fmt.Errorf("no answer from AWS in time: %w", ctx.Err())
	}
	return err
}
