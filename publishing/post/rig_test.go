package post_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/post"
	"crier/tenancy"
	"crier/tests/publishtest"
)

// picky is a platform that refuses the text "refused", a part with neither text nor media, and the
// settings member "wrong".
type picky struct {
	publishtest.Platform
	// before, if set, is called when Validate begins.
	before func()
}

func (p *picky) Describe() connector.Descriptor {
	out := p.Platform.Describe()
	out.MaxLength, out.Unit = 20, connector.Graphemes
	return out
}

func (p *picky) Validate(d connector.Draft) (out []connector.Problem) {
	if p.before != nil {
		p.before()
	}
	for i, part := range d.Parts {
		switch {
		case part.Text == "refused":
			out = append(out, connector.Problem{Part: i, Message: "The text is refused."})
		case part.Text == "" && len(part.Media) == 0:
			out = append(out, connector.Problem{Part: i, Message: "The part is empty."})
		}
	}
	if strings.Contains(string(d.Settings), `"wrong"`) {
		out = append(out, connector.Problem{Message: "The settings are wrong.", Settings: true})
	}
	return out
}

// wakes records the times for which an organization is woken.
type wakes struct {
	mu  sync.Mutex
	due []time.Time
}

func (w *wakes) Wake(_ context.Context, _ tenancy.OrgID, due time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due = append(w.due, due)
}

// rig is an organization with a channel on a picky platform, and the use cases of its posts.
type rig struct {
	*publishtest.Rig
	who      tenancy.Principal
	platform *picky
	waker    *wakes
	channel  publishing.ChannelID
	posts    *post.Posts
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{Rig: publishtest.NewRig(t), platform: &picky{}, waker: &wakes{}}
	r.Register(r.platform)
	r.Deps.Waker = r.waker
	r.who = r.Organization()
	r.channel = r.Connect(r.who.Org)
	r.posts = r.process()
	return r
}

// process returns the use cases of posts in another process, with the dependencies that the rig has
// now.
func (r *rig) process() *post.Posts { return r.Deps.Posts(publishtest.Limits) }

// tomorrow is a time in the future that Postgres stores exactly.
func tomorrow() time.Time { return time.Now().Add(24 * time.Hour).UTC().Truncate(time.Second) }

// entry returns an entry for a channel with one part for each text.
func entry(channel publishing.ChannelID, texts ...string) publishing.CreateEntry {
	out := publishing.CreateEntry{Channel: channel.String()}
	for _, text := range texts {
		out.Parts = append(out.Parts, publishing.CreatePart{Content: text})
	}
	return out
}

// command returns a command for tomorrow.
func command(kind publishing.CreateType, entries ...publishing.CreateEntry) publishing.CreatePosts {
	return publishing.CreatePosts{Type: kind, Date: tomorrow(), Entries: entries, Method: publishing.MethodAPI}
}

func (r *rig) create(cmd publishing.CreatePosts) (publishing.CreateResult, error) {
	return r.posts.Create(r.Context(), r.who, cmd)
}

// created calls create, which must make exactly one post, and returns it.
func (r *rig) created(cmd publishing.CreatePosts) publishing.PostID {
	r.Helper()
	out, err := r.create(cmd)
	r.OK(err)
	if len(out.Created) != 1 {
		r.Fatalf("%d posts were made, want 1", len(out.Created))
	}
	return out.Created[0].Post
}

func (r *rig) get(post publishing.PostID) publishing.PostDetail {
	r.Helper()
	out, err := r.posts.Get(r.Context(), r.who, post.String())
	r.OK(err)
	return out
}

// woken returns the times for which the organization was woken since the last call.
func (r *rig) woken() []time.Time {
	r.waker.mu.Lock()
	defer r.waker.mu.Unlock()
	out := r.waker.due
	r.waker.due = nil
	return out
}

// wantWoken checks the times for which the organization was woken since the last call.
func (r *rig) wantWoken(want ...time.Time) {
	r.Helper()
	if got := r.woken(); !slices.EqualFunc(got, want, time.Time.Equal) {
		r.Errorf("the organization was woken for %v, want %v", got, want)
	}
}

// wantStored checks how many posts the organization has, including deleted ones and followers.
func (r *rig) wantStored(want int) {
	r.Helper()
	n := publishtest.Value[int](r.Base, `select count(id) from post where org_id = $1`, r.who.Org)
	if n != want {
		r.Errorf("%d posts are stored, want %d", n, want)
	}
}

// wantState checks the state of a post.
func (r *rig) wantState(post publishing.PostID, want publishing.State) {
	r.Helper()
	if got := publishtest.Value[publishing.State](r.Base, `select state from post where id = $1`, post); got != want {
		r.Errorf("the post is %s, want %s", got, want)
	}
}

// texts returns the texts of the parts of a thread.
func texts(d publishing.PostDetail) (out []string) {
	for _, part := range d.Root.Parts {
		out = append(out, part.Content.Text)
	}
	return out
}

// kinds returns the kinds of the events of a post.
func kinds(d publishing.PostDetail) (out []publishing.EventKind) {
	for _, e := range d.Events {
		out = append(out, e.Kind)
	}
	return out
}
