package pictures

import (
	"testing"
	"time"
)

func TestDue_LateSearchDoesNotPostponeTheNext(t *testing.T) {
	t.Parallel()
	p := &Maker{periodic: -pictureSearch}
	for _, c := range []struct {
		at   time.Duration
		want bool
	}{
		{at: 0, want: true},
		{at: 5 * time.Second, want: false},
		{at: 15 * time.Second, want: true},
		{at: 32 * time.Second, want: true}, // the search of second 30, delayed by a long picture
		{at: 33 * time.Second, want: false},
		{at: 45*time.Second - time.Millisecond, want: true}, // the tick comes a little early
		{at: 60 * time.Second, want: true},
		{at: 200 * time.Second, want: true}, // after a sleep there is one search, not nine
		{at: 201 * time.Second, want: false},
		{at: 210 * time.Second, want: true},
	} {
		if got := p.due(c.at); got != c.want {
			t.Errorf("at %s: got %t, want %t", c.at, got, c.want)
		}
	}
}
