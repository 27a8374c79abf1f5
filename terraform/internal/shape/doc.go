// Package shape is the form of Queen Bridge's resources as Terraform sees it:
// the fields of package bridge's types with their forms, and the way between
// Terraform's values and documents of the admin API. What a resource does with
// them is left to package provider.
//
// Nothing here lists a field: all come from the Go types that the bridge itself
// reads its configuration with, and their descriptions from those types'
// comments.
package shape
