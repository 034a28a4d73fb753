// Package config reads the settings of a command. Every flag of a long-running
// command is a setting, which a flag, an environment variable or a file may give.
// A flag beats a variable, a variable beats the file, the file beats the default.
//
// All names derive from the flag's: --solve-limit is the variable
// DRONEFLEET_SOLVE_LIMIT and, in the file, the key solve-limit. The tag env adds
// variables, such as those the Google libraries know. An empty variable counts as
// not set. The file is YAML. Top-level keys apply to every command that has them;
// keys below a command's name apply to that command and beat the top-level ones:
//
//	project: my-project
//	serve:
//	  http-addr: 127.0.0.1:8080
//
// Parse reports everything that is wrong with the settings at once: every unknown
// key, every value of the wrong type or out of range, each with its origin and
// what to give instead. Values of settings tagged secret are never shown.
//
// Flags take these tags beside kong's:
//
//	check:"min 1 max 100"   which values are accepted; see parseRule
//	accepts:"one or two"    the same in words, for types that check themselves
//	secret:""               the value is never shown
//
// and commands this one:
//
//	settings:""             every flag of the command is a setting
//
// The package must not import anything that talks to the fleet. Parse returns
// Problems for wrong values, with which a program must not start, and kong's error
// for a wrong command line.
package config
