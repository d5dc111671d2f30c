package publishing

import "time"

// WireTime is the layout of times in responses and webhooks: UTC with milliseconds.
const WireTime = "2006-01-02T15:04:05.000Z"

// ListPosts asks for the posts of a date range or, if Page is set, for one page of all posts. Both
// are ordered by publish date, then by id.
type ListPosts struct {
	// Start and End are the first and last publish date of the range, both inclusive.
	Start, End time.Time
	Page       *Page
	// Customer is a customer id as the client sent it; empty means all customers.
	Customer string
}

// Page asks for one page of all posts, whatever their date.
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
	// CountAhead is the largest number of posts after a page that are counted.
	CountAhead = 10_000
	// MaxListedBytes bounds the posts of one response: the stored texts, plus ListedPart for each
	// part, image and follower. The stored settings have a separate bound of the same size.
	MaxListedBytes = 8 << 20
	// ListedPart is in bytes.
	ListedPart = 128
)

// Thread is one item of the calendar: the posts of a group.
type Thread struct {
	// Root has every part of the group in order, including the parts of followers.
	Root      Post
	Followers []Post
	Channel   Channel
	// Tags are the existing tags of the root, in the root's order.
	Tags []Tag
	// Media holds the media of all parts.
	Media map[MediaID]Medium
}

// Effective returns the post that gives the thread its state and error. If the root is not
// published, that is the root. Otherwise it is the first follower that failed, or else the first
// follower that is not yet published, or else the root.
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
	// Approval is the status of the newest request for approval, as clients see it.
	Approval ApprovalStatus
}
