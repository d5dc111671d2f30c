package publishing

import (
	"time"

	"crier/platform/fault"
)

// PauseScope is the kind of object that is paused. A CHECK constraint of the table carries the same list.
type PauseScope string

// The scopes, from the widest to the narrowest.
const (
	// PauseInstance is the stop of an organization by the instance. The people of the organization cannot undo it, and
	// it is independent of their own pauses.
	PauseInstance     PauseScope = "instance"
	PauseOrganization PauseScope = "organization"
	PauseCustomer     PauseScope = "customer"
	PauseChannel      PauseScope = "channel"
)

// Valid reports whether s is one of the four scopes. The empty one is not.
func (s PauseScope) Valid() bool {
	return s == PauseInstance || s == PauseOrganization || s == PauseCustomer || s == PauseChannel
}

// SetPause pauses or resumes publishing of a channel, a customer or the organization. A channel publishes while neither
// it nor its customer nor its organization is paused, and its organization is not stopped.
type SetPause struct {
	Scope PauseScope
	// ID is the id as the client sent it. It is ignored for the organization.
	ID     string
	Paused bool
}

// Validate returns Invalid for an unknown scope and for PauseInstance, which is no scope of the organization's people.
func (s SetPause) Validate() error {
	if s.Scope.Valid() && s.Scope != PauseInstance {
		return nil
	}
	return fault.New(fault.Invalid, "publishing.SetPause", "There is no such thing to pause.")
}

// MaxHeldShown is the largest number of held posts in an answer.
const MaxHeldShown = 20

// PauseResult is the effect of a pause or a resume.
type PauseResult struct {
	Paused bool
	// Held is the number of posts that are due and wait.
	Held int
	// InFlight is the number of posts whose call to the platform had begun. They are not stopped.
	InFlight int
	// Missed is the number of posts that a resume gave up because they were held for too long.
	Missed int
	// Posts are the first scheduled posts in the order of their due times, at most MaxHeldShown, without parts.
	Posts []Post
	// Channels and Texts have the names of the channels and the excerpts of these posts.
	Channels map[ChannelID]string
	Texts    map[PostID]string
}

// QueueStats are the statistics of a queue. The numbers are numbers of posts.
type QueueStats struct {
	// Due could be published now.
	Due int
	// Overdue are those of Due that are later than OverdueAfter.
	Overdue int
	// Oldest is how long the oldest post of Due has waited.
	Oldest time.Duration
	// Waiting are due, but another post of their channel comes first, or they back off or keep a gap.
	Waiting int
	// Held are due, but a pause or a channel that must be reconnected holds them.
	Held int
	// Publishing are claimed by a process that sends them.
	Publishing int
	// Unknown have an unknown outcome for which the platform is still asked.
	Unknown int
	// Next is when the next post is due; nil when there is none or it was not asked for.
	Next *time.Time
}

// OverdueAfter is the lateness from which a post counts as overdue.
const OverdueAfter = 30 * time.Second

// Healthy reports whether no post is overdue.
func (s QueueStats) Healthy() bool { return s.Overdue == 0 }
