// Package config finds out what a command is to do: every flag of a command
// that runs for long is a setting, which a flag, an environment variable or a
// file may give. A flag beats a variable, a variable beats the file, the file
// beats the default.
//
// The names follow from the flag's. --solve-limit is the variable
// DRONEFLEET_SOLVE_LIMIT and, in the file, the key solve-limit; the tag env adds
// further variables, such as those that the Google libraries know. An empty
// variable counts as none. The file is YAML: keys on top are for every command
// that has them, keys under a command's name for that command alone, and the
// latter beat the former:
//
//	project: my-project
//	serve:
//	  http-addr: 127.0.0.1:8080
//
// What is wrong with the settings is found in one go: Parse names every unknown
// key, every value of the wrong type and every value out of range, with where it
// came from and what to give instead. Values of settings tagged secret appear
// nowhere.
//
// Tags of a flag, setting or not, beside those of kong:
//
//	check:"min 1 max 100"   what values are accepted; see rules.go
//	accepts:"one, or two"   the same for people, of types that check themselves
//	secret:""               its value is never shown
//
// and of a command:
//
//	settings:""             all its flags are settings
//
// It must not import anything that talks to the fleet.
package config
