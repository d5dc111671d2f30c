package publishing

import "time"

// ListPosts asks for the posts of a date range, or for a page of all posts when Page is set. Both are ordered by publish date, then id.
type ListPosts struct {
	Start, End time.Time
	Page       *Page
	Customer   string // customer id as sent, empty = all
}

// Page is a zero-indexed page.
type Page struct {
	Number int
	Limit  int
}

// Page sizes of GET /posts.
const (
	DefaultPageLimit = 20
	MaxPageLimit     = 100
	MaxRange         = 366 * 24 * time.Hour
	MaxListed        = 10_000 // posts in one range answer
	CountAhead       = 10_000 // posts after a page that are counted at most
	// MaxListedBytes is how much the posts of one answer may hold: texts and settings as they are stored, and ListedPart
	// for each part, image and later post of a thread. Settings have as much again of their own.
	MaxListedBytes = 8 << 20
	ListedPart     = 128 // bytes
)

// Thread is what the calendar shows as one item: a group's root with all its parts, whatever run they go out in.
type Thread struct {
	Root      Post // with every part of the group, in order
	Followers []Post
	Channel   Channel
	Media     map[MediaID]Medium // of all parts
}

// Told is the post whose state and error the thread shows: the first one that failed, else the first that is not out yet, else the root.
func (t Thread) Told() Post {
	if t.Root.State != StatePublished {
		return t.Root
	}
	told := t.Root
	for _, f := range t.Followers {
		if f.State == StateError {
			return f
		}
		if told.State == StatePublished {
			told = f
		}
	}
	return told
}

// ThreadPage is an answer to ListPosts.
type ThreadPage struct {
	Threads []Thread
	Total   int // of all pages, or of those up to CountAhead posts after this one; only set in page mode
	HasMore bool
}

// PostDetail is one post with everything that is known of it.
type PostDetail struct {
	Thread
	Events []Event
}
