package provider

import tfaddr "github.com/hashicorp/terraform-registry-address"

// Address is the provider's source address, queenbridge/queenbridge, in full.
const Address = string(tfaddr.DefaultProviderRegistryHost) + "/queenbridge/queenbridge"
