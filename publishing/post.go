// Package publishing defines posts, channels, media and their states, and the rules that apply to
// them. It does no I/O.
package publishing

import (
	"encoding/json"
	"time"

	"crier/platform/id"
	"crier/tenancy"
)

// The tags that distinguish id types (platform/id).
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

// The ids of this domain. The first part of a thread has the same UUID as the thread's root post.
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

// Post is what a channel publishes at one time: one or more parts. The root is the first post of
// its group. A part with a delay begins a follower, which waits for its predecessor.
type Post struct {
	ID      PostID
	Org     tenancy.OrgID
	Group   GroupID
	Channel ChannelID
	State   State
	// Due is nil while the post is in StateWaiting.
	Due *time.Time
	// PublishDate is the time that the calendar shows.
	PublishDate time.Time
	// After is the predecessor, or zero for a root.
	After PostID
	// Delay is the time to wait after the predecessor is published, in whole minutes.
	Delay time.Duration
	// Revision starts at 1 and increases with each edit. A claim that read an earlier revision
	// skips the post.
	Revision int
	// Settings is a JSON object; its member "__type" is the connector.
	Settings       json.RawMessage
	CreationMethod CreationMethod
	// Tags are the tags of the group's root. They may include deleted tags.
	Tags           []TagID
	ReleaseID      *string
	ReleaseURL     *string
	Error          *string
	ErrorCode      *string
	OutcomeUnknown bool
	// Series is zero for a post that does not repeat.
	Series SeriesID
	// Occurrence is the post's number in its series, starting at 0.
	Occurrence int
	// Interval is the number of days between two occurrences.
	Interval int
	// Projected is set on an occurrence that is not stored yet.
	Projected *ProjectedOccurrence
	// CreatedAt is when the post was stored. For a projected occurrence it is when the series was
	// stored.
	CreatedAt time.Time
	// UpdatedAt is the time of the last edit or state change.
	UpdatedAt time.Time
	// Parts are in order. Their positions are numbered across the whole group.
	Parts []Part
}

// ProjectedOccurrence is the source of an occurrence that is not stored yet.
type ProjectedOccurrence struct {
	// Template is the group whose content the occurrence will have.
	Template GroupID
	// Next is when the series' current occurrence, which is stored, is due.
	Next time.Time
}

// Part is one piece of a post: the main text, a thread part or a comment.
type Part struct {
	ID PartID
	// Position is the part's index in its group, starting at 0.
	Position int
	Content  Content
	Media    []Attachment
	// Delay is the time to wait after the previous part is published.
	Delay      time.Duration
	ReleaseID  *string
	ReleaseURL *string
}

// Attachment is a medium on a part. Alt has at most MaxAlt characters and may be empty.
type Attachment struct {
	Media MediaID
	Alt   string
}

// EventKind says what happened to a post. A CHECK constraint on the table has the same list. A new
// kind must be allowed by a migration one version before any code writes it, because processes of
// both versions run during an upgrade.
type EventKind string

// The kinds of events. Most of them are written by SQL statements in the stores.
const (
	EventWritten     EventKind = "written"
	EventEdited      EventKind = "edited"
	EventMoved       EventKind = "moved" // to another date
	EventScheduled   EventKind = "scheduled"
	EventUnscheduled EventKind = "unscheduled"
	EventClaimed     EventKind = "claimed"
	EventSent        EventKind = "sent"      // one part is on the platform
	EventConfirmed   EventKind = "confirmed" // all parts are on the platform
	EventRetried     EventKind = "retried"
	EventFailed      EventKind = "failed"
	EventReturned    EventKind = "returned" // to the queue, through no fault of the post
	EventUnknown     EventKind = "unknown"  // the outcome of the call is unknown
	EventReconciled  EventKind = "looked"   // the platform was queried but could not tell the outcome
	// EventPublishedTwice means that an abandoned publication was found on the platform in addition
	// to a second one.
	EventPublishedTwice EventKind = "published_twice"
	EventSetAside       EventKind = "set_aside" // claims failed; its channel is skipped for a while
	EventDelayed        EventKind = "delayed"   // writing the next occurrence failed; it is retried
	EventStopped        EventKind = "stopped"   // no further occurrence of the series is written
	EventReleased       EventKind = "released"  // a person has entered the post's platform id

	EventApprovalRequested EventKind = "approval_requested"
	EventApproved          EventKind = "approved"
	EventRejected          EventKind = "rejected"
	EventApprovalExpired   EventKind = "approval_expired"
	// EventApprovalVoid means that a request or an approval no longer counts. Its reason says why.
	EventApprovalVoid EventKind = "approval_void"
)

// EventKinds returns every kind of event. A test compares them with the CHECK constraint on the
// table.
func EventKinds() []EventKind {
	return []EventKind{
		EventWritten, EventEdited, EventMoved, EventScheduled, EventUnscheduled, EventClaimed, EventSent, EventConfirmed,
		EventRetried, EventFailed, EventReturned, EventUnknown, EventReconciled, EventPublishedTwice, EventSetAside,
		EventDelayed, EventStopped, EventReleased, EventApprovalRequested, EventApproved, EventRejected,
		EventApprovalExpired, EventApprovalVoid,
	}
}

// Event is an entry in a post's timeline. Node is the host name of the process, By is who acted,
// and Reason is a sentence or an error code.
type Event struct {
	// At is the database's time.
	At     time.Time
	Kind   EventKind
	Node   *string
	By     *string
	Reason *string
}

// CreationMethod is the client through which a post was created.
type CreationMethod string

// The creation methods. Only MethodAPI and MethodCLI are set at present. The column has no CHECK
// constraint.
const (
	MethodAPI      CreationMethod = "API"
	MethodCLI      CreationMethod = "CLI"
	MethodWeb      CreationMethod = "WEB"
	MethodMCP      CreationMethod = "MCP"
	MethodAutopost CreationMethod = "AUTOPOST"
	MethodUnknown  CreationMethod = "UNKNOWN"
)

// MethodFromClient returns the method for a name sent by a public client: MethodCLI for "CLI",
// otherwise MethodAPI.
func MethodFromClient(s string) CreationMethod {
	if s == string(MethodCLI) {
		return MethodCLI
	}
	return MethodAPI
}

// Customer is a group of channels, such as a client of an agency.
type Customer struct {
	ID   CustomerID
	Name string
}

// ReleaseMissing is the release id of a post that the platform published without returning an id.
// It is part of the public API.
const ReleaseMissing = "missing"

// RemoteItem is a published item on a platform.
type RemoteItem struct {
	ID  string
	URL string
}
