package lambdatarget

import (
	"github.com/aws/aws-sdk-go-v2/aws/arn"

	"github.com/queenbridge/queenbridge/bridge"
)

// region is that of the function's ARN, else the configured one; "" leaves it
// to the environment.
func region(l bridge.LambdaTarget) string {
	if parsed, err := arn.Parse(l.Function); err == nil && parsed.Region != "" {
		return parsed.Region
	}
	return l.Region
}
