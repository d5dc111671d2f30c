package publishing

import (
	"time"

	"crier/platform/fault"
)

// PauseScope says what kind of object is paused. A CHECK constraint on the table lists the same
// values.
type PauseScope string

// Pause scopes, from the widest to the narrowest.
const (
	// PauseInstance means that the operator of the instance has stopped publishing for the
	// organization. Members cannot end this pause. It does not affect the pauses that members set.
	PauseInstance     PauseScope = "instance"
	PauseOrganization PauseScope = "organization"
	PauseCustomer     PauseScope = "customer"
	PauseChannel      PauseScope = "channel"
)

// Valid reports whether s is one of the four scopes. The empty scope is not valid.
func (s PauseScope) Valid() bool {
	return s == PauseInstance || s == PauseOrganization || s == PauseCustomer || s == PauseChannel
}

// SetPause pauses or resumes publishing for a channel, a customer or the whole organization. A
// channel does not publish while it, its customer or its organization is paused, or while the
// operator has stopped publishing for the organization.
type SetPause struct {
	Scope PauseScope
	// ID is the id of the channel or customer, as sent by the client. It is ignored if Scope is
	// PauseOrganization.
	ID     string
	Paused bool
}

// Validate returns an Invalid fault if the scope is unknown or is PauseInstance. Members cannot set
// PauseInstance.
func (s SetPause) Validate() error {
	if s.Scope.Valid() && s.Scope != PauseInstance {
		return nil
	}
	return fault.New(fault.Invalid, "publishing.SetPause", "The scope to pause is unknown.")
}

// MaxHeldShown is the largest number of held posts in a response.
const MaxHeldShown = 20

// PauseResult describes the effect of pausing or resuming.
type PauseResult struct {
	Paused bool
	// Held is the number of posts that are due but held back.
	Held int
	// InFlight is the number of posts whose call to the platform had already begun. These calls are
	// not stopped.
	InFlight int
	// Missed is the number of posts that had been held back for too long and were marked as missed
	// when publishing resumed.
	Missed int
	// Posts holds the first MaxHeldShown scheduled posts by due time, without their parts.
	Posts []Post
	// Channels holds the channel names for Posts, and Texts holds excerpts of their texts.
	Channels map[ChannelID]string
	Texts    map[PostID]string
}

// QueueStats counts the posts in a queue.
type QueueStats struct {
	// Due is the number of posts that could be published now.
	Due int
	// Overdue is the number of posts in Due that are more than OverdueAfter late.
	Overdue int
	// Oldest is how long the oldest of the Due posts has been waiting.
	Oldest time.Duration
	// Waiting is the number of due posts that must wait for another post on the same channel, for
	// the minimum gap between two posts, or for a back-off to end.
	Waiting int
	// Held is the number of due posts that are held back by a pause or because their channel must
	// be reconnected.
	Held int
	// Publishing is the number of posts that processes have claimed and are sending.
	Publishing int
	// Unknown is the number of posts whose outcome is unknown and whose platform is still being
	// queried.
	Unknown int
	// Next is when the next post is due. It is nil if no post is scheduled, or if Next was not
	// requested.
	Next *time.Time
}

// OverdueAfter is how late a post must be to count as overdue.
const OverdueAfter = 30 * time.Second

// Healthy reports whether no post is overdue.
func (s QueueStats) Healthy() bool { return s.Overdue == 0 }
