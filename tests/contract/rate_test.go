package contract

import (
	"fmt"
	"testing"
	"time"
)

func TestAPlatformsRateIsKeptOverAllOrganizations(t *testing.T) {
	t.Parallel()
	const most, gap = 3, 100 * time.Millisecond
	r := start(t, map[string]string{"PLATFORM_RATES": "sandbox=3/300ms"})
	due := time.Now().Add(3 * time.Second)
	var all []org
	var posts []string
	var channels []channel
	for range 5 {
		o := r.organization(t)
		for range 3 {
			c := o.channel(t, "A")
			channels, all = append(channels, c), append(all, o)
			posts = append(posts, o.create(t, request("schedule", due, entry(c.id, part(fmt.Sprint("post ", len(posts)))))))
		}
	}
	for i, o := range all {
		o.reaches(t, posts[i], "PUBLISHED")
	}
	var first, last time.Time
	for _, c := range channels {
		at, err := time.Parse(time.RFC3339Nano, r.published(t, c)[0]["at"].(string))
		if err != nil {
			t.Fatal(err)
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	if least := time.Duration(len(posts)-most-1) * gap; last.Sub(first) < least {
		t.Errorf("%d posts went out within %s, which must take %s at least", len(posts), last.Sub(first), least)
	}
}
