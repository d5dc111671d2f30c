package approval

import (
	"math/rand/v2"
	"testing"
	"time"

	"crier/publishing"
)

func TestRemindAt_BeforeWhatComesFirst(t *testing.T) {
	t.Parallel()
	asked := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct{ date, want time.Time }{
		"the post comes first":      {asked.Add(3 * 24 * time.Hour), asked.Add(2 * 24 * time.Hour)},
		"the request ends first":    {asked.Add(30 * 24 * time.Hour), asked.Add(6 * 24 * time.Hour)},
		"the post is too soon":      {asked.Add(24 * time.Hour), time.Time{}},
		"the date has passed":       {asked.Add(-time.Hour), asked.Add(6 * 24 * time.Hour)},
		"the post is at the limit":  {asked.Add(36 * time.Hour), asked.Add(12 * time.Hour)},
		"the post is just too soon": {asked.Add(36*time.Hour - time.Second), time.Time{}},
	} {
		got := remindAt(asked, c.date)
		if got == nil && !c.want.IsZero() || got != nil && !got.Equal(c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	for range 1000 {
		date := asked.Add(time.Duration(rand.Int64N(int64(20*24*time.Hour))) - 24*time.Hour)
		at := remindAt(asked, date)
		if at != nil && (!at.After(asked) || !at.Before(asked.Add(publishing.ApprovalLife)) || date.After(asked) && !at.Before(date)) {
			t.Fatalf("a post at %v is reminded of at %v, which is not between the request and its end", date, at)
		}
	}
}
