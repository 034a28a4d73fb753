// Package ratelimit bounds what each caller may ask of a process: a token bucket for each
// budget, and a number of streams that may be open at once.
//
// It decides nothing about who a caller is, and must not import anything of this project.
// A caller that has not asked for a while is forgotten; that changes nothing for it,
// because its buckets are full. Callers with and without verified credentials have a table
// each. While a table is full, callers that are not in it share one entry, so that nobody
// gets around a limit by changing names, and memory stays bounded.
package ratelimit
