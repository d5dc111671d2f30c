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
	t.Run("posts read back byte for byte", func(t *testing.T) {
		t.Parallel()
		checkReadBack(t, newBluesky(t, server))
	})
	t.Run("posts are published in the order of their times", func(t *testing.T) {
		t.Parallel()
		checkOrder(t, newBluesky(t, server), false)
	})
	t.Run("posts overdue at a restart are published in the order of their times", func(t *testing.T) {
		t.Parallel()
		checkOrder(t, newBluesky(t, server), true)
	})
	for _, c := range crashes(allCrashes) {
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
			t.Run("posts overdue at a restart are published in the order of their times", func(t *testing.T) {
				t.Parallel()
				checkOrder(t, newSandbox(url, grade), true)
			})
			for _, c := range crashes(allCrashes) {
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

// checkReadBack publishes a post with an image, and a thread of three parts with another one, and
// compares them with what the platform has.
func checkReadBack(t *testing.T, a account) {
	s := start(t, a.service())
	connector, form := a.form()
	channel := s.connect(t, connector, form)
	single, thread := parts("image"), parts("thread")
	thread[1].image, thread[1].alt = drawing(), "The second part's"
	for _, sent := range [][]part{single, thread} {
		before := a.posts(t)
		got := s.awaitEnd(t, s.create(t, "schedule", time.Now().Add(2*time.Second), channel, sent), time.Now().Add(patience))
		there := a.posts(t)[len(before):]
		crash{}.checkPublished(t, got, there, sent)
	}
}

// checkOrder creates posts that are due one second apart, in another order. With overdue, the
// service is down until all of them are due.
func checkOrder(t *testing.T, a account, overdue bool) {
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
			t.Fatalf("this machine is too slow: got %v published before the kill", there)
		}
		s.restart(t)
	}
	for _, id := range ids {
		if got := s.awaitEnd(t, id, time.Now().Add(patience)); got.State != "PUBLISHED" {
			t.Errorf("got %v, want it published", got)
		}
	}
	there := a.posts(t)
	if len(there) != len(ids) {
		t.Fatalf("got posts %v, want %d", there, len(ids))
	}
	for i, p := range there {
		if p.text != fmt.Sprint("post ", i) {
			t.Errorf("post %d: got %q", i, p.text)
		}
	}
}
