package conformance

import (
	"slices"
	"strings"
	"testing"
	"time"

	"crier/publishing"
	"crier/publishing/connector"
)

func (s Suite) publish(t *testing.T) {
	d := s.New().Describe()
	t.Run("a text is published once", func(t *testing.T) {
		r := s.onShared(t)
		r.publishOnce(r.item())
	})
	t.Run("the longest text is published whole", func(t *testing.T) {
		r := s.onShared(t)
		item := r.item()
		item.Text += strings.Repeat("x", s.maxLength(d)-connector.Length(item.Text, d.Unit))
		r.publishOnce(item)
	})
	t.Run("a text over the limit is refused permanently or published once", func(t *testing.T) {
		r := s.onShared(t)
		item := r.item()
		item.Text += strings.Repeat("x", s.maxLength(d)+1-connector.Length(item.Text, d.Unit))
		item = r.prepare(item)
		_, err := r.commit(&item)
		if err != nil {
			if connector.KindOf(err, true) != connector.KindContent {
				t.Fatalf("got %v, want %s", err, connector.KindContent)
			}
			r.want(0, item)
			return
		}
		r.want(1, item) // this platform sets no limit
	})
	for _, kind := range offered(d) {
		t.Run(kind+" is published with its alternative text", func(t *testing.T) {
			r := s.onShared(t)
			r.publishOnce(r.item(r.shelf().media(kind, "A line, drawn from corner to corner & \"quoted\"", 1)))
		})
	}
	if d.Media.MaxImages > 1 {
		t.Run("the most images are published in order", func(t *testing.T) {
			r := s.onShared(t)
			r.publishOnce(r.item(r.images(min(d.Media.MaxImages, 10))...))
		})
	}
	t.Run("each part of a thread replies to the part before it", s.thread)
}

func (s Suite) maxLength(d connector.Descriptor) int {
	if s.MaxLength > 0 {
		return s.MaxLength
	}
	return d.MaxLength
}

func offered(d connector.Descriptor) []string {
	var out []string
	if d.Media.MaxImages > 0 {
		out = append(out, "image/png", "image/jpeg")
	}
	if d.Media.MaxVideos > 0 {
		out = append(out, "video/mp4")
	}
	return out
}

func (r *rig) images(count int) []connector.Media {
	shelf := r.shelf()
	var out []connector.Media
	for i := range count {
		out = append(out, shelf.media("image/png", "Picture "+string(rune('A'+i)), uint8(i)))
	}
	return out
}

// itemWithMedia returns an item with up to two images, so that Prepare takes several steps.
func (r *rig) itemWithMedia() connector.Item {
	return r.item(r.images(min(r.c.Describe().Media.MaxImages, 2))...)
}

// publishOnce publishes an item and checks that the platform has exactly one post for it. That post
// must have the Ref's ID and the item's media.
func (r *rig) publishOnce(item connector.Item) connector.Ref {
	r.t.Helper()
	item = r.prepare(item)
	ref, err := r.commit(&item)
	if err != nil {
		r.t.Fatalf("Commit: %v", err)
	}
	seen := r.want(1, item)[0]
	if seen.ID != ref.ID {
		r.t.Errorf("the Ref's ID is %q, the platform's %q", ref.ID, seen.ID)
	}
	r.sameMedia(seen, item.Media)
	return ref
}

func (s Suite) thread(t *testing.T) {
	r := s.onShared(t)
	var items []connector.Item
	var refs []connector.Ref
	for i := range 3 {
		item := r.item()
		if i > 0 {
			item.Root, item.Parent = &refs[0], &refs[i-1]
		}
		refs = append(refs, r.publishOnce(item))
		items = append(items, item)
	}
	var order []string
	for _, seen := range s.Published(t, r.s.Account) {
		order = append(order, seen.ID)
	}
	ids := []string{refs[0].ID, refs[1].ID, refs[2].ID}
	order = slices.DeleteFunc(order, func(id string) bool { return !slices.Contains(ids, id) })
	if !slices.Equal(order, ids) {
		t.Errorf("the parts are in the order %q, want %q", order, ids)
	}
	for i, item := range items {
		seen := r.want(1, item)[0]
		parent, root := "", ""
		if i > 0 {
			parent, root = refs[i-1].ID, refs[0].ID
		}
		if seen.Parent != parent || seen.Root != "" && seen.Root != root {
			t.Errorf("part %d replies to %q in the thread %q, want %q in %q", i, seen.Parent, seen.Root, parent, root)
		}
	}
}

// repeat checks that publications with equal content become separate posts. If the platform
// recognizes repeats, it also checks that a publication that is sent again remains one post.
func (s Suite) repeat(t *testing.T) {
	t.Run("two publications with equal content are two posts", func(t *testing.T) {
		r := s.onShared(t)
		first := r.prepared()
		if _, err := r.commit(&first); err != nil {
			t.Fatalf("Commit: %v", err)
		}
		second := r.prepare(twin(first))
		if _, err := r.commit(&second); err != nil {
			t.Fatalf("Commit of the second: %v", err)
		}
		r.want(2, second)
	})
	t.Run("a lost publication is not taken for a published one with equal content", func(t *testing.T) {
		r := s.onShared(t)
		if r.grade() > publishing.GradeMarked {
			t.Skipf("declared: grade %s reads back by text and time only, or not at all", r.grade())
		}
		first := r.prepared()
		if _, err := r.commit(&first); err != nil {
			t.Fatalf("Commit: %v", err)
		}
		second := r.prepare(twin(first))
		r.arm(LoseRequest)
		if _, err := r.commit(&second); connector.KindOf(err, true) != connector.KindUnknown {
			t.Fatalf("Commit: %v, want unknown", err)
		}
		r.settle(second, false)
		r.want(2, second)
	})
	t.Run("a publication that is sent again is one post where the platform recognizes repeats", func(t *testing.T) {
		r := s.onShared(t)
		if !r.grade().Deduplicates() {
			t.Skipf("declared: grade %s does not recognize repeats", r.grade())
		}
		item := r.prepare(r.itemWithMedia())
		first, err := r.commit(&item)
		if err != nil {
			t.Fatalf("Commit: %v", err)
		}
		r.commitAgain(item, first.ID)
	})
	t.Run("a publication that is sent again without its Handle is one post", func(t *testing.T) {
		r := s.onShared(t)
		if !r.grade().Deduplicates() {
			t.Skipf("declared: grade %s does not recognize repeats", r.grade())
		}
		r.sendWithoutHandle(0)
	})
	t.Run("another CreatedAt is the same post where the key alone identifies it", func(t *testing.T) {
		r := s.onShared(t)
		if !s.KeyOnly || !r.grade().Deduplicates() {
			t.Skip("declared: CreatedAt is part of the identity, or repeats are not recognized")
		}
		r.sendWithoutHandle(time.Hour)
	})
}

// sendWithoutHandle publishes an item, moves its CreatedAt forward by the given duration, and sends
// it again without its Handle. Reconcile and Commit must return the first post.
func (r *rig) sendWithoutHandle(later time.Duration) {
	r.t.Helper()
	item := r.prepare(r.itemWithMedia())
	first, err := r.commit(&item)
	if err != nil {
		r.t.Fatalf("Commit: %v", err)
	}
	item.Handle, item.CreatedAt = nil, item.CreatedAt.Add(later)
	item = r.prepare(item)
	v, err := r.reconcile(item)
	if err != nil || v.Outcome != connector.Published || v.Ref.ID != first.ID {
		r.t.Errorf("Reconcile returns %s %q (%v), want published %q", v.Outcome, v.Ref.ID, err, first.ID)
	}
	r.commitAgain(item, first.ID)
}

// twin returns a new publication with the same content and due time.
func twin(item connector.Item) connector.Item {
	renew(&item.Publication)
	item.Handle = nil
	return item
}

// commitAgain sends a published item again and checks that Commit returns the first post.
func (r *rig) commitAgain(item connector.Item, id string) {
	r.t.Helper()
	again, err := r.commit(&item)
	if err != nil {
		r.t.Fatalf("the same publication sent again: %v", err)
	}
	if again.ID != id {
		r.t.Errorf("the same publication sent again has the ID %q, first %q", again.ID, id)
	}
	r.want(1, item)
}
