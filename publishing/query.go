package publishing

import "time"

// WireTime is the layout of times in responses and webhooks: UTC with milliseconds.
const WireTime = "2006-01-02T15:04:05.000Z"

// ListPosts requests the posts in a date range or, if Page is set, one page of all posts. Either
// way, the posts are ordered by publish date, then by id.
type ListPosts struct {
	// Start and End are the first and last publish date of the range, both inclusive.
	Start, End time.Time
	Page       *Page
	// Customer is a customer id as the client sent it; empty means all customers.
	Customer string
}

// Page requests one page of all posts, regardless of date.
type Page struct {
	// Number is the number of the page; the first is 0.
	Number int
	// Limit is the number of posts on each page, from 1 to MaxPageLimit.
	Limit int
}

// The limits of GET /posts. MaxRange is the longest date range.
const (
	DefaultPageLimit = 20
	MaxPageLimit     = 100
	MaxRange         = 366 * 24 * time.Hour
	// MaxListed is the largest number of posts in the response for a range.
	MaxListed = 10_000
	// CountAhead is the maximum number of posts after a page that are counted.
	CountAhead = 10_000
	// MaxListedBytes limits the size of the posts in one response: their stored texts, plus
	// ListedPart for each part, image and follower. Their stored settings have a separate limit of
	// the same size.
	MaxListedBytes = 8 << 20
	// ListedPart is in bytes.
	ListedPart = 128
)

// Thread is an item in the calendar: the posts of a group.
type Thread struct {
	// Root has every part of the group in order, including the followers' parts.
	Root      Post
	Followers []Post
	Channel   Channel
	// Tags are the existing tags of the root, in the root's order.
	Tags []Tag
	// Media holds the media of all parts.
	Media map[MediaID]Medium
}

// Effective returns the post that determines the thread's state and error. If the root is not
// published, it returns the root. Otherwise, it returns the first follower that failed. If none has
// failed, it returns the first follower that is not yet published, or the root if all are
// published.
func (t Thread) Effective() Post {
	if t.Root.State != StatePublished {
		return t.Root
	}
	effective := t.Root
	for _, f := range t.Followers {
		if f.State == StateError {
			return f
		}
		if effective.State == StatePublished {
			effective = f
		}
	}
	return effective
}

// ThreadPage is the result of ListPosts. For a range it holds every thread, and HasMore is false.
type ThreadPage struct {
	Threads []Thread
	// Total is the number of posts on all pages, counting at most CountAhead after this page. It is
	// 0 for a range.
	Total   int
	HasMore bool
}

// PostDetail is a thread with its timeline: the newest 1000 events of the whole group, oldest
// first.
type PostDetail struct {
	Thread
	Events []Event
	// Approval is the status of the newest approval request, as clients see it.
	Approval ApprovalStatus
}
