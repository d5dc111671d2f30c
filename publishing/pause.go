package publishing

import (
	"time"

	"crier/platform/fault"
)

// PauseScope says what is paused.
type PauseScope string

// The scopes, from the widest to the narrowest.
const (
	PauseOrganization PauseScope = "organization"
	PauseCustomer     PauseScope = "customer"
	PauseChannel      PauseScope = "channel"
)

// Valid tells whether the scope exists.
func (s PauseScope) Valid() bool {
	return s == PauseOrganization || s == PauseCustomer || s == PauseChannel
}

// SetPause keeps back what a channel, a group of channels or the whole organization would publish, or lets it go on. A channel publishes while nothing that it belongs to is paused.
type SetPause struct {
	Scope  PauseScope
	ID     string // as sent; not looked at for the organization
	Paused bool
}

// Validate checks the scope.
func (s SetPause) Validate() error {
	if s.Scope.Valid() {
		return nil
	}
	return fault.New(fault.Invalid, "publishing.SetPause", "There is no such thing to pause.")
}

// MaxHeldShown is how many held posts an answer previews.
const MaxHeldShown = 20

// PauseResult tells what a pause holds back, or what a resume lets go.
type PauseResult struct {
	Paused   bool
	Held     int    // posts that are due already and wait
	InFlight int    // posts whose call to the platform had begun: they end
	Missed   int    // of a resume: held for too long, and given up
	Posts    []Post // the first of those that wait or are booked, without parts, by due time
	Channels map[ChannelID]string
	Texts    map[PostID]string
}

// Figures is how a queue stands.
type Figures struct {
	Due        int           // could be published now
	Overdue    int           // of those, for longer than the alarm's time
	Oldest     time.Duration // how long the oldest of them has waited
	Waiting    int           // due, but behind another post of their channel, backing off or keeping a gap
	Held       int           // due, and kept back by a pause or a channel that must be reconnected
	Publishing int
	Unknown    int
	Next       *time.Time // when the next post is due
}

// OverdueAfter is the lateness from which the alarm counts a post.
const OverdueAfter = 30 * time.Second

// Healthy tells whether nothing waits that should be out.
func (f Figures) Healthy() bool { return f.Overdue == 0 }
