package publishing_test

import (
	"testing"

	"pgregory.net/rapid"

	"crier/platform/id"
	"crier/publishing"
)

func TestOccurrence_IDs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first := id.New[publishing.PostTag]()
		n, m := rapid.IntRange(0, 1<<20).Draw(t, "n"), rapid.IntRange(0, 1<<20).Draw(t, "m")
		if publishing.Occurrence(first, 0) != first {
			t.Fatal("occurrence 0 has another id, want that of the first occurrence")
		}
		if (publishing.Occurrence(first, n) == publishing.Occurrence(first, m)) != (n == m) {
			t.Fatalf("numbers %d and %d: the ids must be equal exactly when the numbers are", n, m)
		}
		if publishing.Occurrence(publishing.Occurrence(first, n), n) != first {
			t.Fatalf("number %d applied twice does not return the original id", n)
		}
	})
}

func TestThread_Effective(t *testing.T) {
	t.Parallel()
	at := func(states ...publishing.State) publishing.Thread {
		th := publishing.Thread{Root: publishing.Post{State: states[0]}}
		for _, s := range states[1:] {
			th.Followers = append(th.Followers, publishing.Post{State: s})
		}
		return th
	}
	const out, waits, queued, failed, draft = publishing.StatePublished, publishing.StateWaiting, publishing.StateQueue, publishing.StateError, publishing.StateDraft
	for name, c := range map[string]struct {
		thread publishing.Thread
		want   publishing.State
	}{
		"all is out":                        {thread: at(out, out, out), want: "PUBLISHED"},
		"a part waits":                      {thread: at(out, waits), want: "WAITING"},
		"a part is due, another waits":      {thread: at(out, out, queued, waits), want: "QUEUE"},
		"a part has failed":                 {thread: at(out, out, failed), want: "ERROR"},
		"one has failed, one before it not": {thread: at(out, queued, failed), want: "ERROR"},
		"the root is booked":                {thread: at(queued, waits), want: "QUEUE"},
		"the root has failed":               {thread: at(failed, failed), want: "ERROR"},
		"the root is a draft":               {thread: at(draft, waits), want: "DRAFT"},
	} {
		if got := c.thread.Effective().State; got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}
