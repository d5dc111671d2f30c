package post_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/publishing"
	"crier/publishing/post"
)

// keyed returns a command with an Idempotency-Key and the hash of its request.
func keyed(key, hash string, entries ...publishing.CreateEntry) publishing.CreatePosts {
	cmd := command(publishing.CreateSchedule, entries...)
	cmd.IdempotencyKey, cmd.RequestHash = key, []byte(hash)
	return cmd
}

func TestCreate_KeyRepeatsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := r.Connect(r.who.Org)
	first, err := r.create(keyed("key", "hash", entry(r.channel, "a text"), entry(other, "a text")))
	r.OK(err)
	if first.Replayed || len(first.Created) != 2 {
		t.Fatalf("the first request returns %+v, want 2 new posts", first)
	}
	r.woken()
	for name, c := range map[string]struct {
		posts    *post.Posts
		cmd      publishing.CreatePosts
		mismatch bool
	}{
		"the same body":              {posts: r.posts, cmd: keyed("key", "hash", entry(r.channel, "a text"))},
		"the same body elsewhere":    {posts: r.process(), cmd: keyed("key", "hash", entry(r.channel, "a text"))},
		"another body":               {posts: r.posts, cmd: keyed("key", "other", entry(r.channel, "other")), mismatch: true},
		"a body that breaks a limit": {posts: r.posts, cmd: keyed("key", "none"), mismatch: true},
	} {
		got, err := c.posts.Create(t.Context(), r.who, c.cmd)
		if err != nil || !got.Replayed || got.Mismatch != c.mismatch || !slices.Equal(got.Created, first.Created) {
			t.Errorf("%s: got %+v, %v; want the answer %+v, mismatch %t", name, got, err, first.Created, c.mismatch)
		}
	}
	r.wantStored(2)
	r.wantWoken()
	again, err := r.create(keyed("another key", "hash", entry(r.channel, "a text")))
	if err != nil || again.Replayed {
		t.Errorf("another key: got %+v, %v; want a new post", again, err)
	}
	r.wantStored(3)
}

func TestCreate_KeyBelongsToItsOrganization(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	stranger := r.Organization()
	theirs := r.Connect(stranger.Org)
	mine := r.created(keyed("key", "hash", entry(r.channel, "a text")))
	got, err := r.posts.Create(t.Context(), stranger, keyed("key", "hash", entry(theirs, "a text")))
	if err != nil || got.Replayed || len(got.Created) != 1 || got.Created[0].Post == mine {
		t.Errorf("the same key of another organization: got %+v, %v; want a post of its own", got, err)
	}
}

// Nothing is stored for a refused request, so it can be corrected and sent again with the same key.
func TestCreate_RefusedRequestLeavesItsKeyFree(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	unknown := entry(r.channel, "a text")
	unknown.Parts[0].ID = "no part" // refused inside the transaction
	for _, e := range []publishing.CreateEntry{entry(r.channel, "refused"), unknown} {
		if _, err := r.create(keyed("key", "wrong", e)); !fault.Is(err, fault.Invalid) {
			t.Fatalf("got %v, want Invalid", err)
		}
	}
	out, err := r.create(keyed("key", "corrected", entry(r.channel, "a text")))
	if err != nil || out.Replayed || out.Mismatch || len(out.Created) != 1 {
		t.Errorf("the corrected request returns %+v, %v; want a new post", out, err)
	}
	r.wantStored(1)
}

// Requests with the same key wait for each other, within one process and across processes.
func TestCreate_ConcurrentRequestsWithOneKeyMakeOnePost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const each = 3
	processes := []*post.Posts{r.posts, r.process()}
	var all sync.WaitGroup
	answers := make(chan publishing.CreateResult, each*len(processes))
	for _, posts := range processes {
		for range each {
			all.Go(func() {
				out, err := posts.Create(t.Context(), r.who, keyed("key", "hash", entry(r.channel, "a text")))
				if err != nil {
					t.Error(err)
				}
				answers <- out
			})
		}
	}
	all.Wait()
	close(answers)
	made := 0
	posts := map[publishing.PostID]bool{}
	for out := range answers {
		if !out.Replayed {
			made++
		}
		for _, c := range out.Created {
			posts[c.Post] = true
		}
	}
	if made != 1 || len(posts) != 1 {
		t.Errorf("%d requests made a post and %d posts are answered, want one", made, len(posts))
	}
	r.wantStored(1)
}

// With ReplayFor, an old result is not returned but replaced.
func TestCreate_ResultIsReplayedForALimitedTime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cmd := keyed("key", "hash", entry(r.channel, "a text"))
	cmd.ReplayFor = 10 * time.Minute
	first, err := r.create(cmd)
	r.OK(err)
	if first.Replayed {
		t.Fatalf("the first request returns %+v, want a new post", first)
	}
	age := func(by string) {
		r.Tenant(r.who.Org, `update idempotency set created_at = now() - $1::interval where key = 'key'`, by)
	}
	age("9 minutes")
	got, err := r.create(cmd)
	if err != nil || !got.Replayed || !slices.Equal(got.Created, first.Created) {
		t.Errorf("after 9 minutes: got %+v, %v; want the first result", got, err)
	}
	age("11 minutes")
	second, err := r.create(cmd)
	if err != nil || second.Replayed || second.Created[0].Post == first.Created[0].Post {
		t.Errorf("after 11 minutes: got %+v, %v; want a new post", second, err)
	}
	got, err = r.create(cmd)
	if err != nil || !got.Replayed || !slices.Equal(got.Created, second.Created) {
		t.Errorf("at once after that: got %+v, %v; want the second result", got, err)
	}
	r.wantStored(2)
}

// With ReplayFor, the result is not returned after one of its posts has been deleted.
func TestCreate_ResultOfDeletedPostIsNotReplayed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, replay := range map[string]time.Duration{"automatic": 10 * time.Minute, "sent": 0} {
		cmd := keyed(name, "hash", entry(r.channel, "a text"), entry(r.channel, "another text"))
		cmd.ReplayFor = replay
		first, err := r.create(cmd)
		r.OK(err)
		r.OK(r.posts.Delete(t.Context(), r.who, first.Created[1].Post.String()))
		second, err := r.create(cmd)
		if err != nil || second.Replayed != (replay == 0) {
			t.Errorf("%s: after a post was deleted: got %+v, %v; want new posts: %t", name, second, err, replay > 0)
		}
		third, err := r.create(cmd)
		if err != nil || !third.Replayed || !slices.Equal(third.Created, second.Created) {
			t.Errorf("%s: after that: got %+v, %v; want the result %+v", name, third, err, second.Created)
		}
	}
}
