package publishing

import (
	"encoding/json"
	"time"

	"crier/tenancy"
)

// MaxChannels is the largest number of channels an organization can have. Lists of channels are
// held in memory, at about 3 KB per channel.
const MaxChannels = 10_000

// Channel is a connected account on a platform.
type Channel struct {
	ID  ChannelID
	Org tenancy.OrgID
	// Connector is the lower-case identifier of the platform. Example: bluesky
	Connector string
	Name      string
	// Profile is the account's handle. Example: alice.bsky.social
	Profile string
	// Picture is a URL; it may be empty.
	Picture string
	// AccountID is the account's id on its platform.
	AccountID string
	// Account is what the connector stores about the account.
	Account       json.RawMessage
	Grade         Grade
	Customer      *Customer
	Disabled      bool
	RefreshNeeded bool
	// RefreshReason is why RefreshNeeded is set, as a sentence for users. It may be empty.
	RefreshReason string
	// AppID is the client id of the application that the account was connected through. It is empty
	// if the platform is connected with a form.
	AppID string
	// Timezone is an IANA name or a fixed offset, in the form that tenancy.LoadZone takes.
	Timezone string
	// Destination holds the hosts that the channel's posts are sent to, joined by commas. Only the
	// sender loads it. Example: pds.example:8443
	Destination string
	// CreatedAt is when the account was first connected; reconnecting does not change it.
	CreatedAt time.Time
	// ConnectedAt is when the account was last connected.
	ConnectedAt time.Time
}

// Grade describes how a platform helps to publish a post exactly once. The table stores the letter.
type Grade string

// The grades, best to worst.
const (
	// GradeIdempotent: the platform de-duplicates by a key or content address that we send, so
	// sending the same publication twice creates one post.
	GradeIdempotent Grade = "A"
	// GradeTrackable: the platform returns a publication's outcome for a handle that we store.
	GradeTrackable Grade = "B"
	// GradeMarked: a published post can be found with certainty by a marker that we add to it.
	GradeMarked Grade = "C"
	// GradeSearchable: a published post can be searched for by its text and time only.
	GradeSearchable Grade = "D"
	// GradeOpaque: the platform cannot be queried.
	GradeOpaque Grade = "E"
)

// Valid reports whether g is one of the five letters that a CHECK constraint on the table allows.
func (g Grade) Valid() bool { return len(g) == 1 && g >= GradeIdempotent && g <= GradeOpaque }

// Deduplicates reports whether a publication that was not found on the platform may be sent again
// immediately with the same key.
func (g Grade) Deduplicates() bool { return g == GradeIdempotent || g == GradeTrackable }

// Askable reports whether the platform can be queried for a publication's outcome.
func (g Grade) Askable() bool { return g != GradeOpaque }

// TriggerTool runs a tool of a channel's platform.
type TriggerTool struct {
	Channel string
	Name    string
	// Data holds strings, numbers (float64) and booleans. Members that the tool does not declare
	// are ignored.
	Data map[string]any
}
