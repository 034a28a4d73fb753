// Package input reads the bytes of every file and message: size, UTF-8, byte order mark,
// and the rules that JSON, YAML and CSV share. A name may be given once in an object,
// also in another case, and nothing may be nested deeper than MaxDepth. What a format
// means is its reader's business.
//
// It must not import any other package of this module. An error is Problems, or one of
// the operating system.
package input
