// Package clitest runs the project's commands the way their users do: as binaries, in an
// environment that names no other fleet. Program builds a command under cmd/; MainOf runs
// the test binary itself as the command.
//
// It is for tests only and must not import a use case.
package clitest
