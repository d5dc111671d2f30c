package publishing_test

import (
	"testing"

	"crier/publishing"
)

func TestPartly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		out  []int
		at   int
		want string
	}{
		{nil, 0, "Too long."},
		{nil, 2, "Too long."},
		{[]int{0}, 1, "Part 1 is published. Part 2: Too long."},
		{[]int{0, 1}, 2, "Parts 1 and 2 are published. Part 3: Too long."},
		{[]int{0, 1, 2}, 4, "Parts 1, 2 and 3 are published. Part 5: Too long."},
	} {
		if got := publishing.Partly(c.out, c.at, "Too long."); got != c.want {
			t.Errorf("%v, %d: %q", c.out, c.at, got)
		}
	}
}
