package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// defaultTimeout bounds one operation.
const defaultTimeout = 2 * time.Minute

// drainTimeout bounds what waits for a route to drain: its events in flight, its
// retries and its dead letters, and the time until every replica knows.
const drainTimeout = 10 * time.Minute

// timeout is what an object's timeouts say about an operation, or standard.
func timeout(v tftypes.Value, operation string, standard time.Duration) time.Duration {
	text := textAt(v, attrTimeouts+"."+operation)
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return d
	}
	return standard
}

// durationValidator accepts 90s, 1m30s.
type durationValidator struct{}

func (durationValidator) Description(context.Context) string { return "a duration such as 90s" }
func (durationValidator) MarkdownDescription(context.Context) string {
	return "a duration such as `90s`"
}

func (durationValidator) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if d, err := time.ParseDuration(req.ConfigValue.ValueString()); err != nil || d <= 0 {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid duration",
			req.Path.String()+": must be a duration such as 90s, got "+req.ConfigValue.String())
	}
}
