package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/queenbridge/queenbridge/bridge"
	"github.com/queenbridge/queenbridge/bridge/adminapi"
	"github.com/queenbridge/queenbridge/terraform/internal/shape"
)

// readable is what the data sources of all kinds do.
type readable struct{ managed }

func newReadable(kind bridge.Kind, computed []string) readable {
	return readable{newManaged(kind, computed)}
}

var _ datasource.DataSourceWithConfigure = (*sourceDataSource)(nil)

// Configure takes the connection.
func (d *readable) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	d.api, _ = req.ProviderData.(*connection)
}

// Read looks the resource up.
func (d *readable) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	if !d.connected(&resp.Diagnostics) {
		return
	}
	name := textAt(req.Config.Raw, attrName)
	r, err := d.api.Read(ctx, d.kind, name)
	if adminapi.IsCode(err, adminapi.CodeNotFound) {
		resp.Diagnostics.AddAttributeError(path.Root(attrName), "Not found", fmt.Sprintf("The bridge has no %s %q.", d.word(), name))
		return
	}
	if err != nil {
		d.report(&resp.Diagnostics, "read", tftypes.Value{}, err)
		return
	}
	doc, err := bridge.ParseJSON(r.Document)
	if err != nil {
		d.report(&resp.Diagnostics, "read", tftypes.Value{}, err)
		return
	}
	state, _ := shape.Value(req.Config.Raw.Type(), doc)
	for _, attribute := range append([]string{attrVersion, attrManagedBy, attrState}, d.computed...) {
		state = withText(state, attribute, d.known(ctx, attribute, r))
	}
	resp.State.Raw = state
}

// documentOf is an answer of the API as a document.
func documentOf(answer any, diags *diag.Diagnostics) (bridge.Node, bool) {
	data, err := json.Marshal(answer)
	if err == nil {
		var doc bridge.Node
		if doc, err = bridge.ParseJSON(data); err == nil {
			return doc, true
		}
	}
	diags.AddError("Cannot read the answer", fmt.Sprintf("%s: %v", reflect.TypeOf(answer), err))
	return bridge.Node{}, false
}
