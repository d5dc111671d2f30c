package e2e

import (
	"fmt"
	"testing"
	"time"

	"crier/tests/pds"
	"crier/tests/sandboxtest"
)

func TestBluesky(t *testing.T) {
	t.Parallel()
	server := pds.Start(t)
	t.Run("what is published reads back byte for byte", func(t *testing.T) {
		t.Parallel()
		readsBack(t, newBluesky(t, server))
	})
	t.Run("posts come out in the order of their times", func(t *testing.T) {
		t.Parallel()
		inOrder(t, newBluesky(t, server), false)
	})
	t.Run("posts overdue at a restart come out in the order of their times", func(t *testing.T) {
		t.Parallel()
		inOrder(t, newBluesky(t, server), true)
	})
	for _, c := range crashes(everything) {
		if c.platform == bluesky {
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				c.run(t, newBluesky(t, server))
			})
		}
	}
}

func TestSandbox(t *testing.T) {
	t.Parallel()
	url := sandboxtest.Start(t)
	for _, grade := range []string{gradeC, gradeA, gradeE} {
		t.Run("grade "+grade, func(t *testing.T) {
			t.Parallel()
			t.Run("posts overdue at a restart come out in the order of their times", func(t *testing.T) {
				t.Parallel()
				inOrder(t, newSandbox(url, grade), true)
			})
			for _, c := range crashes(everything) {
				if c.platform == grade {
					t.Run(c.String(), func(t *testing.T) {
						t.Parallel()
						c.run(t, newSandbox(url, grade))
					})
				}
			}
		})
	}
}

// readsBack publishes a post with an image and a thread of three with another, and compares.
func readsBack(t *testing.T, a account) {
	s := start(t, a.service())
	connector, form := a.form()
	channel := s.connect(t, connector, form)
	single, thread := parts("image"), parts("thread")
	thread[1].image, thread[1].alt = drawing(), "The second part's"
	for _, sent := range [][]part{single, thread} {
		before := a.posts(t)
		got := s.settled(t, s.create(t, "schedule", time.Now().Add(2*time.Second), channel, sent), time.Now().Add(patience))
		there := a.posts(t)[len(before):]
		crash{}.published(t, got, there, sent)
	}
}

// inOrder books posts a second apart, not in their order, and lets a kill make them all overdue when asked to.
func inOrder(t *testing.T, a account, overdue bool) {
	s := start(t, a.service())
	connector, form := a.form()
	channel := s.connect(t, connector, form)
	first := time.Now().Add(5 * time.Second).Truncate(time.Second)
	ids := make([]string, 3)
	for _, i := range []int{2, 0, 1} {
		ids[i] = s.create(t, "schedule", first.Add(time.Duration(i)*time.Second), channel, []part{{text: fmt.Sprint("post ", i)}})
	}
	if overdue {
		s.kill()
		await(t, "the last post's time", first.Add(patience), func() bool { return time.Now().After(first.Add(3 * time.Second)) }, func() string { return "nothing" })
		if there := a.posts(t); len(there) > 0 {
			t.Fatalf("this machine is too slow: published before the kill was %v", there)
		}
		s.restart(t)
	}
	for _, id := range ids {
		if got := s.settled(t, id, time.Now().Add(patience)); got.State != "PUBLISHED" {
			t.Errorf("a post is not published: %v", got)
		}
	}
	there := a.posts(t)
	if len(there) != len(ids) {
		t.Fatalf("%d posts are wanted, there are %v", len(ids), there)
	}
	for i, p := range there {
		if p.text != fmt.Sprint("post ", i) {
			t.Errorf("place %d has %q", i, p.text)
		}
	}
}
