// Package clitest runs the project's commands the way their users do: as built
// binaries, in an environment that names no other fleet.
//
// It is for tests only and must not import a use case.
package clitest
