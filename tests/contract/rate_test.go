package contract

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"crier/publishing"
	"crier/tests/relay"
)

// nostr connects a channel on a relay.
func (o org) nostr(t *testing.T, r *relay.Relay) channel {
	t.Helper()
	state, err := o.app.Channels.Begin(t.Context(), o.who, publishing.BeginConnect{Connector: "nostr"})
	if err != nil {
		t.Fatal(err)
	}
	form := map[string]string{"key": strings.Repeat("1", 64), "relays": r.URL(), "name": "Free"}
	connected, err := o.app.Channels.Finish(t.Context(), publishing.FinishConnect{
		Connector: "nostr", State: state, Fields: form,
	})
	if err != nil {
		t.Fatal(err)
	}
	return channel{id: connected.Channel.ID.String(), account: connected.Channel.AccountID}
}

func TestRate_PlatformLimitSpansOrganizations(t *testing.T) {
	t.Parallel()
	const organizations, each, most = 5, 3, 3
	book := func(t *testing.T, r *rig, due time.Time) (all []org, posts []string) {
		t.Helper()
		for range organizations {
			o := r.organization(t)
			for range each {
				text := part(fmt.Sprint("post ", len(posts)))
				posts = append(posts, o.create(t, request("schedule", due, entry(o.channel(t, "A").id, text))))
				all = append(all, o)
			}
		}
		return all, posts
	}
	t.Run("no more posts are published than the rate allows, and other platforms continue", func(t *testing.T) {
		t.Parallel()
		free := relay.Start(t)
		r := start(t, map[string]string{
			"PLATFORM_RATES": fmt.Sprintf("sandbox=%d/1h", most), "OUTBOUND_ALLOW": free.Addr(),
		})
		due := time.Now().Add(3 * time.Second)
		all, posts := book(t, r, due)
		var last []string
		for i := 0; i < len(all); i += each {
			next := entry(all[i].nostr(t, free).id, part("free"))
			last = append(last, all[i].create(t, request("schedule", due.Add(time.Second), next)))
		}
		// Their claims show that the process has seen the posts that were due earlier.
		for i, post := range last {
			all[i*each].reaches(t, post, "PUBLISHED")
		}
		begun := func() (n int) {
			for i, post := range posts {
				if slices.Contains(all[i].post(t, post).events(), "claimed") {
					n++
				}
			}
			return n
		}
		eventually(t, "a post within the rate", func() bool { return begun() > 0 }, func() any { return posts })
		if n := begun(); n > most {
			t.Errorf("%d of %d posts were claimed, want at most %d", n, len(posts), most)
		}
	})
	t.Run("all posts are published in the end", func(t *testing.T) {
		t.Parallel()
		r := start(t, map[string]string{"PLATFORM_RATES": fmt.Sprintf("sandbox=%d/300ms", most)})
		all, posts := book(t, r, time.Now().Add(3*time.Second))
		for i, post := range posts {
			all[i].reaches(t, post, "PUBLISHED")
		}
	})
}
