package publishing_test

import (
	"testing"

	"crier/publishing"
)

func TestPartialPublishMessage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		published []int
		failed    int
		want      string
	}{
		{published: nil, failed: 0, want: "Too long."},
		{published: nil, failed: 2, want: "Too long."},
		{published: []int{0}, failed: 1, want: "Part 1 is published. Part 2: Too long."},
		{published: []int{0, 1}, failed: 2, want: "Parts 1 and 2 are published. Part 3: Too long."},
		{published: []int{0, 1, 2}, failed: 4, want: "Parts 1, 2 and 3 are published. Part 5: Too long."},
	} {
		if got := publishing.PartialPublishMessage(c.published, c.failed, "Too long."); got != c.want {
			t.Errorf("parts %v published, part %d failed: got %q, want %q", c.published, c.failed, got, c.want)
		}
	}
}
