package aws

import (
	"context"
	"fmt"
	"sync"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// Session holds the credentials of the process, and of the roles it assumes,
// so that any number of targets fetch them once. The zero value is ready for
// use. Safe for concurrent use.
type Session struct {
	mu    sync.Mutex
	base  *sdk.Config
	roles map[role]sdk.CredentialsProvider
}

// role is a role assumed through the STS of one region.
type role struct{ arn, region string }

// roleSession names the bridge in the trail of a role (CloudTrail).
const roleSession = "queenbridge"

// expiryWindow is how long before their end credentials are fetched again: no
// signature is made with ones that end on the way.
const expiryWindow = time.Minute

// Config is the SDK's configuration for a region; an empty one is that of the
// environment (AWS_REGION, the profile), which may be empty too. Where
// assumeRole, the ARN of a role, is not empty, the credentials are those of
// that role. It reads the environment and its files and calls nobody.
func (s *Session) Config(ctx context.Context, region, assumeRole string) (sdk.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.base == nil {
		base, err := config.LoadDefaultConfig(ctx, config.WithCredentialsCacheOptions(earlier))
		if err != nil {
			return sdk.Config{}, fmt.Errorf("read the AWS environment: %w", err)
		}
		s.base = &base
	}
	c := s.base.Copy()
	if region != "" {
		c.Region = region
	}
	if assumeRole != "" {
		c.Credentials = s.assumed(role{assumeRole, c.Region}, c)
	}
	return c, nil
}

func earlier(o *sdk.CredentialsCacheOptions) {
	o.ExpiryWindow, o.ExpiryWindowJitterFrac = expiryWindow, 0.5
}

// assumed are the credentials of a role; mu is held.
func (s *Session) assumed(r role, c sdk.Config) sdk.CredentialsProvider {
	if known := s.roles[r]; known != nil {
		return known
	}
	provider := stscreds.NewAssumeRoleProvider(sts.NewFromConfig(c), r.arn, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = roleSession
	})
	if s.roles == nil {
		s.roles = make(map[role]sdk.CredentialsProvider)
	}
	s.roles[r] = sdk.NewCredentialsCache(provider, earlier)
	return s.roles[r]
}
