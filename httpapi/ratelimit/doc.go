// Package ratelimit bounds what each caller may ask of a process: a token bucket for each
// budget, and a number of streams that may be open at once.
//
// It does not identify callers, and must not import anything of this project. A caller whose
// buckets are full again is forgotten, which changes nothing for it. Callers with and without
// verified credentials have a table each. While a table is full, callers that are not in it share
// one entry: memory stays bounded, and changing names gets nobody around a limit.
package ratelimit
