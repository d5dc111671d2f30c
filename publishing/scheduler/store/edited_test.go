package store_test

import (
	"sync"
	"testing"
	"time"

	"crier/publishing"
	mediastore "crier/publishing/media/store"
	"crier/publishing/scheduler/dispatch"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tests/fixture"
)

// enrich adds a picture and two further parts to a post that has only a text.
func (r *rig) enrich(post publishing.PostID, medium publishing.MediaID) error {
	return r.Rewrite(post, func(channel publishing.ChannelID) []publishing.Post {
		posts := fixture.Post(r.Org, channel, time.Now().Add(-time.Second), 0, 0)
		posts[0].Parts[0].Media = []publishing.Attachment{{Media: medium}}
		return posts
	})
}

// A large claim runs concurrently with edits. A post may get a picture and more parts after the
// claim has read it and before the claim locks it.
func TestClaim_HasPartsOfEditedPost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	medium := fixture.Medium(r.Org, time.Now())
	_, err := mediastore.SaveMedium(t.Context(), r.Store, medium, nil, 0)
	r.OK(err)
	posts := make([]publishing.PostID, 150)
	for i := range posts {
		posts[i] = r.Post(r.Channel(), -time.Second)
	}
	var race sync.WaitGroup
	var edited sync.Map
	for from := range 6 {
		race.Go(func() {
			for i := from; i < len(posts); i += 6 {
				if r.enrich(posts[i], medium.ID) == nil {
					edited.Store(posts[i], true)
				}
			}
		})
	}
	var claimed []dispatch.Claimed
	for len(claimed) < len(posts) {
		claimed = append(claimed, r.Claim(len(posts))...)
	}
	race.Wait()
	for _, c := range claimed {
		works, err := schedulerstore.Load(t.Context(), r.Store, []publishing.PostID{c.Post})
		r.OK(err)
		if _, rich := edited.Load(c.Post); rich && (len(works[0].Parts) != 3 || len(works[0].Parts[0].Media) != 1) {
			t.Errorf("of an edited post: %d parts, %d media", len(works[0].Parts), len(works[0].Parts[0].Media))
		}
	}
}
