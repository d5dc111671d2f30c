package publishing

import (
	"encoding/json"
	"time"

	"crier/tenancy"
)

// MaxChannels is the largest number of channels of one organization. A list of channels is held in
// memory, at about 3 KB per channel.
const MaxChannels = 10_000

// Channel is a connected account on a platform.
type Channel struct {
	ID  ChannelID
	Org tenancy.OrgID
	// Connector is the lower-case identifier of the platform. Example: bluesky
	Connector string
	Name      string
	// Profile is the handle of the account. Example: alice.bsky.social
	Profile string
	// Picture is a URL; it may be empty.
	Picture string
	// AccountID is the id of the account on its platform.
	AccountID string
	// Account is what the connector stores about the account.
	Account       json.RawMessage
	Grade         Grade
	Customer      *Customer
	Disabled      bool
	RefreshNeeded bool
	// RefreshReason is why RefreshNeeded is set, as a sentence for users. It may be empty.
	RefreshReason string
	// AppID is the client id of the application with which the account was connected. It is empty
	// for a platform that is connected with a form.
	AppID string
	// Timezone is an IANA name or a fixed offset, in the form that tenancy.LoadZone takes.
	Timezone string
	// Destination is the host that its posts go to. Only the sender loads it.
	Destination string
	// CreatedAt is when the account was first connected; a reconnect does not change it.
	CreatedAt time.Time
	// ConnectedAt is when the account was last connected.
	ConnectedAt time.Time
}

// Grade is what a platform offers to help publish a post exactly once. The letter is what the table
// stores.
type Grade string

// The grades, best to worst.
const (
	// GradeIdempotent: the platform de-duplicates by a key or a content address of ours, so sending
	// the same publication twice makes one post.
	GradeIdempotent Grade = "A"
	// GradeTrackable: the platform returns the outcome of a publication for a stored handle.
	GradeTrackable Grade = "B"
	// GradeMarked: a published post can be found with certainty by a mark of ours.
	GradeMarked Grade = "C"
	// GradeSearchable: a published post can be searched for only by its text and time.
	GradeSearchable Grade = "D"
	// GradeOpaque: the platform cannot be asked.
	GradeOpaque Grade = "E"
)

// Valid reports whether g is one of the five letters that a CHECK constraint of the table allows.
func (g Grade) Valid() bool { return len(g) == 1 && g >= GradeIdempotent && g <= GradeOpaque }

// Deduplicates reports whether a publication that is not on the platform may be sent again at once
// under the same key.
func (g Grade) Deduplicates() bool { return g == GradeIdempotent || g == GradeTrackable }

// Askable reports whether the platform can be asked for the outcome of a publication.
func (g Grade) Askable() bool { return g != GradeOpaque }

// TriggerTool runs a tool of the platform of a channel.
type TriggerTool struct {
	Channel string
	Name    string
	// Data holds strings, numbers (float64) and booleans. Members that the tool does not declare
	// are ignored.
	Data map[string]any
}
