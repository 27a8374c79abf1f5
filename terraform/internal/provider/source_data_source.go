package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"

	"github.com/queenbridge/queenbridge/bridge"
)

type sourceDataSource struct{ readable }

func newSourceDataSource() datasource.DataSource {
	return &sourceDataSource{newReadable(bridge.KindSource, []string{attrIngressURL, attrSetupHint})}
}

// Metadata names the data source.
func (d *sourceDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_source"
}

// Schema are the data source's attributes.
func (d *sourceDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = dataSchema("A source as it is, also one of the bridge's configuration file.", d.fields, d.computed)
}
