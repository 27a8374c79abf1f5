package signing

import (
	"fmt"
	"slices"
)

// checklist collects every problem of a source's options.
type checklist struct{ problems []Problem }

func (c *checklist) add(path, text string, args ...any) {
	c.problems = append(c.problems, Problem{Path: path, Text: fmt.Sprintf(text, args...)})
}

// suggest returns " (did you mean …?)" for the nearest of the known words, or
// "" where none is near.
func suggest(word string, known []string) string {
	best, distance := "", max(2, len(word)/3)+1
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := editDistance(word, k); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// editDistance is Levenshtein's: how many letters to change from a to b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
