package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"

	"github.com/queenbridge/queenbridge/bridge"
)

type targetDataSource struct{ readable }

func newTargetDataSource() datasource.DataSource {
	return &targetDataSource{newReadable(bridge.KindTarget, nil)}
}

// Metadata names the data source.
func (d *targetDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_target"
}

// Schema are the data source's attributes.
func (d *targetDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = dataSchema("A target as it is, also one of the bridge's configuration file.", d.fields, d.computed)
}
