package bridge

import (
	"regexp"
	"time"
)

// The forms of names at AWS, after the API reference of Lambda's Invoke and of
// STS's AssumeRole.
var (
	// functionForm is a name, a partial ARN or an ARN; its groups are the
	// region and the version or alias.
	functionForm = regexp.MustCompile(`^(?:arn:aws[a-z-]*:lambda:([a-z0-9-]+):)?(?:\d{12}:function:)?[A-Za-z0-9_.-]{1,64}(?::(\$LATEST|[A-Za-z0-9_-]{1,128}))?$`)
	// arnForm tells an ARN from a name.
	arnForm       = regexp.MustCompile(`^arn:aws[a-z-]*:lambda:[a-z0-9-]+:\d{12}:function:`)
	qualifierForm = regexp.MustCompile(`^(?:\$LATEST|[A-Za-z0-9_-]{1,128})$`)
	regionForm    = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
	roleForm      = regexp.MustCompile(`^arn:aws[a-z-]*:iam::\d{12}:role/\S+$`)
)

// maxLambdaTimeout is 5 s more than the longest function's 900 s: a call that
// ends before its function is a second run of it (dispatch.md §2.1).
const maxLambdaTimeout = 905 * time.Second

func (l LambdaTarget) check(k checklist) {
	l.checkFunction(k)
	k.when(l.Qualifier != "" && !qualifierForm.MatchString(l.Qualifier), "qualifier", "must be a version, an alias or $LATEST, got %q", cutText(l.Qualifier, 100))
	k.when(l.Region != "" && !regionForm.MatchString(l.Region), "region", "must be a region such as eu-west-1, got %q", cutText(l.Region, 100))
	if l.Endpoint != "" {
		k.webURL("endpoint", l.Endpoint)
	}
	k.roleARN("assume_role", l.AssumeRole)
	k.word("invoke", l.Invoke, invokes)
	k.word("payload", l.Payload, lambdaPayloads)
	k.when(l.Timeout <= 0 || l.Timeout > maxLambdaTimeout, "timeout", "must be above 0s and at most 905s, got %s", FormatDuration(l.Timeout))
}

// checkFunction checks the name, and that nothing is named twice.
func (l LambdaTarget) checkFunction(k checklist) {
	parts := functionForm.FindStringSubmatch(l.Function)
	switch {
	case l.Function == "":
		k.fail("function", "is required: a name or an ARN")
	case parts == nil || len(l.Function) > 3 && l.Function[:4] == "arn:" && !arnForm.MatchString(l.Function):
		k.fail("function", "must be a name (thumb), a partial ARN (123456789012:function:thumb) or an ARN (arn:aws:lambda:eu-west-1:123456789012:function:thumb), got %q", cutText(l.Function, 200))
	default:
		k.when(l.Qualifier != "" && parts[2] != "", "qualifier", "is part of lambda.function, too (%s): write it once", parts[2])
		k.when(l.Region != "" && parts[1] != "" && l.Region != parts[1], "region", "is %s in the ARN of lambda.function: remove one", parts[1])
	}
}

// roleARN checks a role to assume; empty is none.
func (c checklist) roleARN(field, text string) {
	c.when(text != "" && !roleForm.MatchString(text), field, "must be the ARN of a role, got %q", cutText(text, 200))
}

// checkLambda refuses what a call of AWS's API does not have.
func (t Target) checkLambda(k checklist) {
	if t.Lambda == nil || t.HTTP != nil {
		return
	}
	t.Lambda.check(k.below("lambda"))
	k.when(t.Auth.Type != AuthNone, "auth", "belongs to http targets: a Lambda function is called with AWS credentials, those of the environment or of lambda.assume_role")
	k.when(len(t.Signing.Secrets) > 0, "signing", "belongs to http targets: a Lambda function knows its callers by their AWS credentials")
	k.when(t.TLS.CA != "" || t.TLS.Cert != "" || t.TLS.Key != "" || len(t.TLS.Pins) > 0, "tls", "belongs to http targets: remove it")
	k.when(t.Network.Proxy != "", "network.proxy", "belongs to http targets: remove it")
}
