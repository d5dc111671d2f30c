// Package publishing holds the words and rules of what the product does: posts, channels, media and their states. It does no I/O.
package publishing

import (
	"encoding/json"
	"time"

	"crier/platform/id"
	"crier/tenancy"
)

// The tags that keep the ids of this domain apart (platform/id).
type (
	PostTag        struct{}
	GroupTag       struct{}
	PartTag        struct{}
	ChannelTag     struct{}
	MediaTag       struct{}
	CustomerTag    struct{}
	PublicationTag struct{}
	SeriesTag      struct{}
)

// The ids of this domain.
type (
	PostID        = id.ID[PostTag]
	GroupID       = id.ID[GroupTag]
	PartID        = id.ID[PartTag]
	ChannelID     = id.ID[ChannelTag]
	MediaID       = id.ID[MediaTag]
	CustomerID    = id.ID[CustomerTag]
	PublicationID = id.ID[PublicationTag]
	SeriesID      = id.ID[SeriesTag]
)

// Post is one channel's share of what was asked: the parts that go out in one go. The root is the group's first post;
// a part with a delay begins a follower, which waits for its predecessor.
type Post struct {
	ID             PostID
	Org            tenancy.OrgID
	Group          GroupID
	Channel        ChannelID
	State          State
	Due            *time.Time // nil while WAITING
	PublishDate    time.Time  // what the calendar shows
	After          PostID     // predecessor, zero for a root
	Delay          time.Duration
	Revision       int
	Settings       json.RawMessage // object; "__type" is the connector
	CreationMethod CreationMethod
	ReleaseID      *string
	ReleaseURL     *string
	Error          *string
	ErrorCode      *string
	OutcomeUnknown bool
	Series         SeriesID // of a repeated post, zero for any other
	Occurrence     int      // its number in the series
	Interval       int      // days between occurrences
	Coming         *Coming  // set on a later occurrence, which is not stored yet
	CreatedAt      time.Time
	UpdatedAt      time.Time
	Parts          []Part // in order; positions count through the whole group
}

// Coming is what a later occurrence is made of.
type Coming struct {
	Template GroupID   // whose content it will have
	Next     time.Time // when the next occurrence, the one that is stored, goes out
}

// Part is one piece of a post: the main text, a thread part or a comment.
type Part struct {
	ID         PartID
	Position   int
	Content    Content
	Media      []Attachment
	Delay      time.Duration // after the part before it
	ReleaseID  *string
	ReleaseURL *string
}

// Attachment is a medium on a part.
type Attachment struct {
	Media MediaID
	Alt   string
}

// Event is one line of a post's timeline.
type Event struct {
	At     time.Time
	Event  string
	Node   *string
	By     *string
	Reason *string
}

// CreationMethod says by which way a post came in.
type CreationMethod string

// The ways in.
const (
	MethodAPI      CreationMethod = "API"
	MethodCLI      CreationMethod = "CLI"
	MethodWeb      CreationMethod = "WEB"
	MethodMCP      CreationMethod = "MCP"
	MethodAutopost CreationMethod = "AUTOPOST"
	MethodUnknown  CreationMethod = "UNKNOWN"
)

// MethodFromClient maps what a public client says of itself; anything but CLI is the API.
func MethodFromClient(s string) CreationMethod {
	if s == string(MethodCLI) {
		return MethodCLI
	}
	return MethodAPI
}

// Customer is a channel group of an agency.
type Customer struct {
	ID   CustomerID
	Name string
}
