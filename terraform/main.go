// Command terraform-provider-queenbridge is the Terraform provider of Queen
// Bridge. What it does stands in internal/provider.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/queenbridge/queenbridge/terraform/internal/provider"
)

// version is set by the build.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "wait for a debugger")
	flag.Parse()
	err := providerserver.Serve(context.Background(), provider.New(version), providerserver.ServeOpts{
		Address: provider.Address, Debug: *debug,
	})
	if err != nil {
		log.Fatal(err)
	}
}
