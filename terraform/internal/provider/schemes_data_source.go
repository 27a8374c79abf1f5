package provider

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/terraform/internal/shape"
)

type schemesDataSource struct{ readable }

func newSchemesDataSource() datasource.DataSource {
	return &schemesDataSource{readable{managed{fields: shape.OfStruct(reflect.TypeFor[adminapi.Scheme]())}}}
}

// attrSchemes is the map of all schemes by name.
const attrSchemes = "schemes"

// Metadata names the data source.
func (d *schemesDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_schemes"
}

// Schema are the data source's attributes.
func (d *schemesDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attributes := dataAttributes(d.fields)
	resp.Schema = schema.Schema{
		MarkdownDescription: "Every way for a source to prove itself: the providers' presets and the generic verifiers.",
		Attributes: map[string]schema.Attribute{attrSchemes: schema.MapNestedAttribute{
			Computed: true, MarkdownDescription: "The schemes by their names.",
			NestedObject: schema.NestedAttributeObject{Attributes: attributes},
		}},
	}
}

// Read asks for the schemes.
func (d *schemesDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	if !d.connected(&resp.Diagnostics) {
		return
	}
	list, err := d.api.Schemes(ctx)
	if err != nil {
		resp.Diagnostics.AddError("Cannot read the schemes", explain(err))
		return
	}
	all := bridge.Node{Kind: bridge.NodeMap}
	for _, s := range list {
		doc, ok := documentOf(s, &resp.Diagnostics)
		if !ok {
			return
		}
		all.Members = append(all.Members, bridge.Member{Key: s.Name, Value: doc})
	}
	whole := bridge.Node{Kind: bridge.NodeMap, Members: []bridge.Member{{Key: attrSchemes, Value: all}}}
	resp.State.Raw, _ = shape.Value(req.Config.Raw.Type(), whole)
}
