package aws

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// SignerConfig makes a Signer.
type SignerConfig struct {
	// Session whose credentials sign. Nil means one of its own.
	Session *Session
	// Service is required: the service's name in a signature, lambda for
	// function URLs, execute-api for API Gateway.
	Service string
	// Region defaults to the one Endpoint names, then to the environment's.
	Region string
	// AssumeRole is the ARN of a role whose credentials sign. Empty: the
	// environment's own sign.
	AssumeRole string
	// Endpoint is the URL of the requests. It is only read for its region.
	Endpoint string
}

// Signer signs HTTP requests by AWS Signature Version 4. Safe for concurrent
// use.
type Signer struct {
	credentials     sdk.CredentialsProvider
	service, region string
	signer          *v4.Signer
}

// NewSigner makes a Signer. It calls nobody; credentials are looked for by the
// first Sign.
func NewSigner(ctx context.Context, c SignerConfig) (*Signer, error) {
	if c.Service == "" {
		return nil, errors.New("make an AWS signer: the service is required")
	}
	if c.Region == "" {
		c.Region = regionOfHost(c.Endpoint)
	}
	if c.Session == nil {
		c.Session = new(Session)
	}
	found, err := c.Session.Config(ctx, c.Region, c.AssumeRole)
	if err != nil {
		return nil, err
	}
	if found.Region == "" {
		return nil, errors.New("make an AWS signer: the region is not known: write it, or set AWS_REGION")
	}
	return &Signer{
		credentials: found.Credentials, service: c.Service, region: found.Region, signer: v4.NewSigner(),
	}, nil
}

// own are headers of a signature. Those of an earlier signature, or of the
// event that is passed on, must not be taken for ours.
var own = []string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256"}

// Sign puts the headers of a signature on a request whose body is body, byte
// for byte; now is the time it is made, valid for five minutes (AWS's window).
// Every header but User-Agent, Expect, Transfer-Encoding and X-Amzn-Trace-Id
// is signed, so the request must not change afterwards. The error says why
// there are no credentials; ctx bounds the search for them.
func (s *Signer) Sign(ctx context.Context, r *http.Request, body []byte, now time.Time) error {
	if s.credentials == nil {
		return errNoCredentials
	}
	credentials, err := s.credentials.Retrieve(ctx)
	if err != nil {
		return fmt.Errorf("find AWS credentials: %w", err)
	}
	for _, name := range own {
		r.Header.Del(name)
	}
	hash := sha256.Sum256(body)
	if err := s.signer.SignHTTP(ctx, credentials, r, hex.EncodeToString(hash[:]), s.service, s.region, now); err != nil {
		return fmt.Errorf("sign for AWS: %w", err)
	}
	return nil
}

var errNoCredentials = errors.New("find AWS credentials: there are none in the environment")

// regionOfHost reads the region in AWS's own host names; "" where there is
// none: <id>.lambda-url.<region>.on.aws, <id>.execute-api.<region>.amazonaws.com,
// <service>.<region>.amazonaws.com.
func regionOfHost(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	labels := strings.Split(strings.ToLower(u.Hostname()), ".")
	n := len(labels)
	switch {
	case n >= 5 && labels[n-2] == "on" && labels[n-1] == "aws" && labels[n-4] == "lambda-url":
		return labels[n-3]
	case n >= 4 && labels[n-2] == "amazonaws" && labels[n-1] == "com":
		return regionLike(labels[n-3])
	case n >= 5 && labels[n-3] == "amazonaws" && labels[n-2] == "com" && labels[n-1] == "cn":
		return regionLike(labels[n-4])
	}
	return ""
}

// regionLike is label where it looks like a region: eu-west-1,
// us-gov-west-1. A service without regions has its name there.
func regionLike(label string) string {
	if strings.Count(label, "-") >= 2 && label[len(label)-1] >= '0' && label[len(label)-1] <= '9' {
		return label
	}
	return ""
}
