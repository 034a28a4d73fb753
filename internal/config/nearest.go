package config

// nearest is the name a typing mistake away from what was given; empty if none
// is.
func nearest(given string, names []string) string {
	best, least := "", 3 // mistakes
	for _, name := range names {
		if n := distance(given, name); n < least && 2*n <= len(name) {
			best, least = name, n
		}
	}
	return best
}

// distance is how many letters must be put in, left out or changed to make b
// of a: Levenshtein's.
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
