package publishing

import (
	"time"

	"crier/platform/fault"
)

// PauseScope is the kind of object that is paused. A CHECK constraint on the table has the same
// list.
type PauseScope string

// The scopes, from the widest to the narrowest.
const (
	// PauseInstance means that the instance's operator has stopped the organization. Members cannot
	// undo this pause, and it is independent of the pauses they set.
	PauseInstance     PauseScope = "instance"
	PauseOrganization PauseScope = "organization"
	PauseCustomer     PauseScope = "customer"
	PauseChannel      PauseScope = "channel"
)

// Valid reports whether s is one of the four scopes. The empty scope is not valid.
func (s PauseScope) Valid() bool {
	return s == PauseInstance || s == PauseOrganization || s == PauseCustomer || s == PauseChannel
}

// SetPause pauses or resumes publishing for a channel, a customer or the organization. A channel
// publishes only while none of the three is paused and the organization is not stopped.
type SetPause struct {
	Scope PauseScope
	// ID is the id as the client sent it. It is ignored for the organization.
	ID     string
	Paused bool
}

// Validate returns Invalid for an unknown scope, and for PauseInstance, which members cannot set.
func (s SetPause) Validate() error {
	if s.Scope.Valid() && s.Scope != PauseInstance {
		return nil
	}
	return fault.New(fault.Invalid, "publishing.SetPause", "The scope to pause is unknown.")
}

// MaxHeldShown is the largest number of held posts in a response.
const MaxHeldShown = 20

// PauseResult is the effect of a pause or a resume.
type PauseResult struct {
	Paused bool
	// Held is the number of posts that are due and held back.
	Held int
	// InFlight is the number of posts whose call to the platform had already begun. They are not
	// stopped.
	InFlight int
	// Missed is the number of posts that were marked as missed on resuming, because they had been
	// held for too long.
	Missed int
	// Posts are the scheduled posts that are due first, at most MaxHeldShown, without their parts.
	Posts []Post
	// Channels holds the channel names of these posts, and Texts their excerpts.
	Channels map[ChannelID]string
	Texts    map[PostID]string
}

// QueueStats counts the posts in a queue.
type QueueStats struct {
	// Due is the number of posts that could be published now.
	Due int
	// Overdue is how many of the Due posts are late by more than OverdueAfter.
	Overdue int
	// Oldest is how long the oldest Due post has waited.
	Oldest time.Duration
	// Waiting posts are due, but must wait for another post on the channel, for a back-off, or for
	// the gap between two posts.
	Waiting int
	// Held posts are due, but a pause or a channel that must be reconnected holds them back.
	Held int
	// Publishing posts are claimed by a process that is sending them.
	Publishing int
	// Unknown posts have an unknown outcome, and the platform is still being queried about it.
	Unknown int
	// Next is when the next post is due. It is nil if there is none or if it was not requested.
	Next *time.Time
}

// OverdueAfter is how late a post must be to count as overdue.
const OverdueAfter = 30 * time.Second

// Healthy reports whether no post is overdue.
func (s QueueStats) Healthy() bool { return s.Overdue == 0 }
