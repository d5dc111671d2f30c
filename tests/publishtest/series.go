package publishtest

import (
	"log/slog"
	"time"

	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/post"
	poststore "crier/publishing/post/store"
	"crier/publishing/scheduler"
	"crier/publishing/scheduler/dispatch"
	"crier/tests/fixture"
)

// Repeated stores a repeated post with one part, and another part for each delay. It returns the
// first occurrence, which is a second overdue.
func (r *StoreRig) Repeated(
	channel publishing.ChannelID, rule publishing.Repeat, zone string, delays ...time.Duration,
) publishing.PostID {
	r.Helper()
	due := time.Now().Add(-time.Second).UTC().Truncate(time.Second)
	posts := fixture.Post(r.Org, channel, due, delays...)
	template := fixture.Post(r.Org, channel, due, delays...)
	template[0].State = publishing.StateDraft
	r.OK(r.InOrg(func(tx *db.Tx) error {
		if err := poststore.Insert(r.Context(), tx, NewPosts(posts)); err != nil {
			return err
		}
		return poststore.Repeat(r.Context(), tx, posts[0].ID, rule, zone, NewPosts(template))
	}))
	return posts[0].ID
}

// Sender returns a process that writes the next occurrences of repeated posts.
func (r *StoreRig) Sender() *scheduler.Sender {
	return scheduler.New(scheduler.Config{}, scheduler.Deps{
		DB: r.Store, Log: slog.New(slog.DiscardHandler), Series: post.Series{DB: r.Store},
	})
}

// WriteOccurrences writes the next occurrences of repeated posts and returns how many it wrote.
// They must be few enough for one call.
func (r *StoreRig) WriteOccurrences() int {
	r.Helper()
	written, more, err := r.Sender().WriteOccurrences(r.Context(), r.Lease)
	r.OK(err)
	if more {
		r.Error("more is to be done")
	}
	return written
}

// End claims a due post, finishes it, and then writes the next occurrences of repeated posts.
func (r *StoreRig) End(post publishing.PostID, result dispatch.Result, code string) {
	r.Helper()
	r.ClaimAndFinish(post, result, code)
	r.WriteOccurrences()
}
