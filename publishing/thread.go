package publishing

import (
	"fmt"
	"strconv"
	"strings"
)

// Partly says what became of a thread that stopped midway: which parts are out, so that nobody publishes them a second time, and why part at is not.
// Positions count from 0, in words from 1. With nothing out it is why, alone.
func Partly(out []int, at int, why string) string {
	if len(out) == 0 {
		return why
	}
	words := make([]string, len(out))
	for i, position := range out {
		words[i] = strconv.Itoa(position + 1)
	}
	which := "Part " + words[0] + " is"
	if last := len(words) - 1; last > 0 {
		which = "Parts " + strings.Join(words[:last], ", ") + " and " + words[last] + " are"
	}
	return fmt.Sprintf("%s published. Part %d: %s", which, at+1, why)
}
