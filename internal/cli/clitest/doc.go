// Package clitest runs a program in processes of its own from the program's own
// tests: the test binary is the program when it is told so, and nothing has to be
// built.
//
// It is for tests and must not import a use case.
package clitest
