package publishing

import "time"

// WireTime is the format of times in responses and webhooks: UTC with milliseconds.
const WireTime = "2006-01-02T15:04:05.000Z"

// ListPosts requests the posts in a date range. If Page is set, it requests one page of all posts
// instead. In both cases, posts are ordered by publish date, then by id.
type ListPosts struct {
	// Start and End are the earliest and latest publish dates in the range. Both are inclusive.
	Start, End time.Time
	Page       *Page
	// Customer is a customer id as sent by the client; empty means all customers.
	Customer string
}

// Page requests one page of all posts, regardless of date.
type Page struct {
	// Number is the page number, starting at 0.
	Number int
	// Limit is the number of posts on each page, from 1 to MaxPageLimit.
	Limit int
}

// Limits for GET /posts. MaxRange is the longest date range.
const (
	DefaultPageLimit = 20
	MaxPageLimit     = 100
	MaxRange         = 366 * 24 * time.Hour
	// MaxListed is the maximum number of posts in a response for a date range.
	MaxListed = 10_000
	// CountAhead is the maximum number of posts that are counted beyond a page.
	CountAhead = 10_000
	// MaxListedBytes limits the size of the posts in one response. The size is the total length of
	// the stored texts, plus ListedPart for each part, image and follower. The stored settings have
	// a separate limit of the same size.
	MaxListedBytes = 8 << 20
	// ListedPart is in bytes.
	ListedPart = 128
)

// Thread is an item in the calendar. It holds the posts of one group.
type Thread struct {
	// Root has every part of the group in order, including the followers' parts.
	Root      Post
	Followers []Post
	Channel   Channel
	// Tags holds the root's tags in order, without deleted tags.
	Tags []Tag
	// Media holds the media of all parts.
	Media map[MediaID]Medium
}

// Effective returns the post that determines the thread's state and error. If the root is not
// published, it returns the root. Otherwise, it returns the first follower that failed. If none
// failed, it returns the first follower that is not published yet, or the root if all followers are
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

// ThreadPage is the result of ListPosts. For a date range, it holds all threads and HasMore is
// false.
type ThreadPage struct {
	Threads []Thread
	// Total is the number of posts on all pages. At most CountAhead posts beyond this page are
	// counted. Total is 0 for a date range.
	Total   int
	HasMore bool
}

// PostDetail is a thread with its timeline. The timeline holds the 1000 newest events of the whole
// group, oldest first.
type PostDetail struct {
	Thread
	Events []Event
	// Approval is the status of the newest approval request, as shown to clients.
	Approval ApprovalStatus
}
