package pg

import (
	"testing"

	"pgregory.net/rapid"
)

func TestSharesAddUpAndLeaveNobodyOut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int32Range(int32(len(roles)), 500).Draw(t, "total")
		var sum int32
		for _, r := range roles {
			n := share(r, total)
			if n < 1 {
				t.Fatalf("%s has %d of %d", r, n, total)
			}
			sum += n
		}
		if sum != total {
			t.Fatalf("%d given out of %d", sum, total)
		}
	})
}
