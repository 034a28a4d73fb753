// Package tfmodule evaluates a Terraform module without Terraform, its
// providers or a network: it gives every resource instance that the module
// would plan, with the values known before anything exists. Tests hold those
// against what the code needs.
//
// It understands what the module in deploy/terraform uses: variables with
// their validation, locals, outputs, for_each, count and dynamic blocks.
// Modules within modules, data sources and provisioners are refused. What only
// the real service can tell, such as an address, is an unknown value.
//
// A mistake in the module (a reference to nothing, a wrong function) is an
// error that names file and line. The package must import nothing of the
// fleet: what is right is for its callers to say.
package tfmodule
