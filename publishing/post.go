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

// Ids of posts and related objects. The first part of a thread has the same UUID as the thread's
// root post.
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

// Post holds one or more parts that a channel publishes at the same time. The first post of a group
// is the group's root. Each part with a delay begins another post, a follower, which waits for its
// predecessor.
type Post struct {
	ID      PostID
	Org     tenancy.OrgID
	Group   GroupID
	Channel ChannelID
	State   State
	// Due is nil while the post is in StateWaiting.
	Due *time.Time
	// PublishDate is the time shown in the calendar.
	PublishDate time.Time
	// After is the post's predecessor, or zero for a root.
	After PostID
	// Delay is how long to wait after the predecessor has been published. It is in whole minutes.
	Delay time.Duration
	// Revision starts at 1 and increases with each edit. If a claim has read an earlier revision,
	// the claim skips the post.
	Revision int
	// Settings is a JSON object. Its member "__type" is the name of the connector.
	Settings       json.RawMessage
	CreationMethod CreationMethod
	// Tags are the tags of the group's root. They may include tags that have been deleted.
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
	// CreatedAt is when the post was stored. For a projected occurrence, it is when the series was
	// stored.
	CreatedAt time.Time
	// UpdatedAt is the time of the last edit or state change.
	UpdatedAt time.Time
	// Parts holds the parts in order. Their positions are numbered across the whole group.
	Parts []Part
}

// ProjectedOccurrence holds data about an occurrence that is not stored yet.
type ProjectedOccurrence struct {
	// Template is the group whose content the occurrence will copy.
	Template GroupID
	// Next is when the series' current occurrence is due. That occurrence is stored.
	Next time.Time
}

// Part is one piece of a post: the main text, a thread part or a comment.
type Part struct {
	ID PartID
	// Position is the part's index in its group, starting at 0.
	Position int
	Content  Content
	Media    []Attachment
	// Delay is how long to wait after the previous part has been published.
	Delay      time.Duration
	ReleaseID  *string
	ReleaseURL *string
}

// Attachment is a medium attached to a part. Alt has at most MaxAlt characters and may be empty.
type Attachment struct {
	Media MediaID
	Alt   string
}

// EventKind says what happened to a post. A CHECK constraint on the table lists the same values. A
// migration must allow a new kind one version before any code writes it, because processes of both
// versions run during an upgrade.
type EventKind string

// Kinds of timeline events. Most of them are written by SQL statements in the stores.
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
	// EventPublishedTwice means that the post is on the platform twice. An abandoned publication
	// was found there in addition to a later one.
	EventPublishedTwice EventKind = "published_twice"
	EventSetAside       EventKind = "set_aside" // claims failed; its channel is skipped for a while
	EventDelayed        EventKind = "delayed"   // writing the next occurrence failed; it is retried
	EventStopped        EventKind = "stopped"   // no further occurrence of the series is written
	EventReleased       EventKind = "released"  // a person has entered the post's platform id

	EventApprovalRequested EventKind = "approval_requested"
	EventApproved          EventKind = "approved"
	EventRejected          EventKind = "rejected"
	EventApprovalExpired   EventKind = "approval_expired"
	// EventApprovalVoid means that a request or an approval is no longer valid. The event's reason
	// explains why.
	EventApprovalVoid EventKind = "approval_void"
)

// EventKinds returns all kinds of events. A test compares the result with the CHECK constraint on
// the table.
func EventKinds() []EventKind {
	return []EventKind{
		EventWritten, EventEdited, EventMoved, EventScheduled, EventUnscheduled, EventClaimed, EventSent,
		EventConfirmed,
		EventRetried, EventFailed, EventReturned, EventUnknown, EventReconciled, EventPublishedTwice, EventSetAside,
		EventDelayed, EventStopped, EventReleased, EventApprovalRequested, EventApproved, EventRejected,
		EventApprovalExpired, EventApprovalVoid,
	}
}

// Event is an entry in a post's timeline. Node names the process that recorded the event. Reason is
// a sentence or an error code.
type Event struct {
	// At is the database's time.
	At   time.Time
	Kind EventKind
	Node *string
	// By describes who acted; see tenancy.ParseActor. It is nil if the service itself acted.
	By     *string
	Reason *string
	// KeyName and PersonName are the current names of the key and the person in By. They are empty
	// if unknown.
	KeyName    string `db:"key_name"`
	PersonName string `db:"person_name"`
}

// Actor returns who caused the event, or nil if the service itself caused it.
func (e Event) Actor() *tenancy.Actor {
	if e.By == nil {
		return nil
	}
	a := tenancy.ParseActor(*e.By)
	switch a.Kind {
	case tenancy.ActorPerson:
		a.Name = e.PersonName
	case tenancy.ActorKey:
		a.Name = e.KeyName
	default:
		a.PersonName = e.PersonName
	}
	return &a
}

// CreationMethod identifies the kind of client that created a post.
type CreationMethod string

// Creation methods. Only MethodAPI and MethodCLI are in use. The column has no CHECK constraint.
const (
	MethodAPI      CreationMethod = "API"
	MethodCLI      CreationMethod = "CLI"
	MethodWeb      CreationMethod = "WEB"
	MethodMCP      CreationMethod = "MCP"
	MethodAutopost CreationMethod = "AUTOPOST"
	MethodUnknown  CreationMethod = "UNKNOWN"
)

// MethodFromClient returns the creation method for a name sent by a public client. It returns
// MethodCLI for "CLI" and MethodAPI for any other name.
func MethodFromClient(s string) CreationMethod {
	if s == string(MethodCLI) {
		return MethodCLI
	}
	return MethodAPI
}

// Customer is a group of channels, such as the channels of an agency's client.
type Customer struct {
	ID   CustomerID
	Name string
}

// ReleaseMissing is the release id of a post that was published without the platform returning an
// id. The value is part of the public API.
const ReleaseMissing = "missing"

// RemoteItem is an item that has been published on a platform.
type RemoteItem struct {
	ID  string
	URL string
}
