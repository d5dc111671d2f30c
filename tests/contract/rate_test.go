package contract

import (
	"fmt"
	"slices"
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
	var times []time.Time
	for _, c := range channels {
		times = append(times, r.published(t, c)[0].At)
	}
	took := slices.MaxFunc(times, time.Time.Compare).Sub(slices.MinFunc(times, time.Time.Compare))
	if least := time.Duration(len(posts)-most-1) * gap; took < least {
		t.Errorf("%d posts went out within %s, which must take %s at least", len(posts), took, least)
	}
}
