package provider

import (
	"cmp"
	"context"
	"os"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/queenbridge/queenbridge/bridge/adminapi"
)

// The environment of the provider; its arguments win.
const (
	envEndpoint    = "QUEENBRIDGE_ENDPOINT"
	envToken       = "QUEENBRIDGE_TOKEN" //nolint:gosec // the name, no token
	envIngressBase = "QUEENBRIDGE_INGRESS_BASE_URL"
)

type bridgeProvider struct{ version string }

var _ provider.Provider = bridgeProvider{}

// New returns what makes the provider, of a version.
func New(version string) func() provider.Provider {
	return func() provider.Provider { return bridgeProvider{version} }
}

// Metadata names the provider.
func (p bridgeProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName, resp.Version = "queenbridge", p.version
}

// Schema are the provider's arguments.
func (p bridgeProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Sources, targets, routes and queues of a [Queen Bridge](https://github.com/queenbridge/queenbridge), over its admin API. " +
			"A replica of the bridge follows a change within 3 seconds; no restart is needed.",
		Attributes: map[string]schema.Attribute{
			"endpoint": schema.StringAttribute{Optional: true,
				MarkdownDescription: "URL of the bridge's admin listener. Defaults to `" + envEndpoint + "`, then to `" + adminapi.DefaultEndpoint + "`."},
			"token": schema.StringAttribute{Optional: true, Sensitive: true,
				MarkdownDescription: "Bearer token with the role admin; viewer is enough for a plan, which then is not validated by the bridge. Defaults to `" + envToken + "`."},
			"ingress_base_url": schema.StringAttribute{Optional: true,
				MarkdownDescription: "URL at which the internet reaches the bridge's ingress, such as `https://hooks.example.com`; only for `ingress_url` of sources. Defaults to `" + envIngressBase + "`."},
			"request_timeout": schema.StringAttribute{Optional: true, Validators: []validator.String{durationValidator{}},
				MarkdownDescription: "Bounds one request. Those that were answered 429 or 503, or not at all, are repeated within the timeout of the operation. Defaults to `30s`."},
		},
	}
}

// arguments are the provider's arguments as they stand in a configuration.
type arguments struct {
	Endpoint       types.String `tfsdk:"endpoint"`
	Token          types.String `tfsdk:"token"`
	IngressBaseURL types.String `tfsdk:"ingress_base_url"`
	RequestTimeout types.String `tfsdk:"request_timeout"`
}

// Configure makes the connection. While an argument is not known (it comes from
// a resource that is still to be made) there is none, and plans are made without
// asking the bridge.
func (p bridgeProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var a arguments
	resp.Diagnostics.Append(req.Config.Get(ctx, &a)...)
	if resp.Diagnostics.HasError() || a.Endpoint.IsUnknown() || a.Token.IsUnknown() {
		return
	}
	s := settings{
		endpoint: cmp.Or(a.Endpoint.ValueString(), os.Getenv(envEndpoint)), token: cmp.Or(a.Token.ValueString(), os.Getenv(envToken)),
		ingressBase: cmp.Or(a.IngressBaseURL.ValueString(), os.Getenv(envIngressBase)),
		userAgent:   "terraform-provider-queenbridge/" + p.version, timeout: 30 * time.Second,
	}
	if d, err := time.ParseDuration(a.RequestTimeout.ValueString()); err == nil {
		s.timeout = d
	}
	c, err := connect(s)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("endpoint"), "Invalid endpoint", err.Error())
		return
	}
	resp.ResourceData, resp.DataSourceData = c, c
}

// Resources lists the resources.
func (p bridgeProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{newSourceResource, newTargetResource, newRouteResource, newQueueResource}
}

// DataSources lists the data sources.
func (p bridgeProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{newSourceDataSource, newTargetDataSource, newRouteDataSource, newQueueDataSource,
		newSchemesDataSource, newStatusDataSource}
}
