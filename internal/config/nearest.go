package config

// nearest returns the name that was probably meant: the one with the fewest
// differences, at most two and at most half its length; empty if none is near.
func nearest(given string, names []string) string {
	best, least := "", 3 // differences
	for _, name := range names {
		if n := distance(given, name); n < least && 2*n <= len(name) {
			best, least = name, n
		}
	}
	return best
}

// distance is the Levenshtein distance of a and b, in bytes.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
