package input

import "strings"

// Nearest returns the name that given probably stands for: one that differs only in case,
// else the one with the fewest edits, at most two and at most half its letters. It is empty
// if there is none. Names of one or two letters never match, as they resemble too many.
func Nearest(given string, names []string) string {
	const most = 2
	best, least := "", most+1
	for _, name := range names {
		n := distance(strings.ToLower(given), strings.ToLower(name), most)
		if n < least && (n == 0 || len(name) > 2 && 2*n <= len(name)) {
			best, least = name, n
		}
	}
	return best
}

// distance is the Levenshtein distance of a and b in bytes, or most+1 if it is larger than most.
func distance(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	row := make([]int, len(b)+1) // the distances of b's beginnings to that of a
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(b)], most+1)
}
