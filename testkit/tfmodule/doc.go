// Package tfmodule evaluates a Terraform module without Terraform, its
// providers or a network: it returns every resource instance that Terraform
// would plan, with the values known before anything exists. Tests compare them
// with what the code needs.
//
// It supports what the module in deploy/terraform uses: variables with
// validation, locals, outputs, for_each, count and dynamic blocks. Nested
// modules, data sources and provisioners are errors. What only the real service
// knows, such as an address, is an unknown value.
//
// A mistake in the module (an undefined reference, an unknown function) is an
// error that names file and line. The package must import no other package of
// the project: its callers decide what is right.
package tfmodule
