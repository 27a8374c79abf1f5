package provider

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"

	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/terraform/internal/shape"
)

type statusDataSource struct{ readable }

func newStatusDataSource() datasource.DataSource {
	return &statusDataSource{readable{managed{fields: shape.OfStruct(reflect.TypeFor[adminapi.Status]())}}}
}

// Metadata names the data source.
func (d *statusDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_status"
}

// Schema are the data source's attributes.
func (d *statusDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{MarkdownDescription: "State of the process that answers.", Attributes: dataAttributes(d.fields)}
}

// Read asks for the state.
func (d *statusDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	if !d.connected(&resp.Diagnostics) {
		return
	}
	status, err := d.api.Status(ctx)
	if err != nil {
		resp.Diagnostics.AddError("Cannot read the status", explain(err))
		return
	}
	if doc, ok := documentOf(status, &resp.Diagnostics); ok {
		resp.State.Raw, _ = shape.Value(req.Config.Raw.Type(), doc)
	}
}
