package config

import "github.com/dronefleet/dronefleet/internal/editdistance"

// nearest returns the name that was probably meant: the one with the fewest
// differences, at most two and at most half its length; empty if none is near.
func nearest(given string, names []string) string {
	const most = 2
	best, least := "", most+1 // differences
	for _, name := range names {
		if n := editdistance.Of(given, name, most); n < least && 2*n <= len(name) {
			best, least = name, n
		}
	}
	return best
}
