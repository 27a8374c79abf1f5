package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"

	"github.com/queenbridge/queenbridge/bridge"
)

type routeDataSource struct{ readable }

func newRouteDataSource() datasource.DataSource {
	return &routeDataSource{newReadable(bridge.KindRoute, nil)}
}

// Metadata names the data source.
func (d *routeDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_route"
}

// Schema are the data source's attributes.
func (d *routeDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = dataSchema("A route as it is, also one of the bridge's configuration file.", d.fields, d.computed)
}
