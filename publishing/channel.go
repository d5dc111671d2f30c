package publishing

import (
	"encoding/json"
	"time"

	"crier/tenancy"
)

// MaxChannels is the maximum number of channels per organization. Lists of channels are held in
// memory, where each channel takes about 3 KB.
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
	// Account is the connector's stored data about the account.
	Account       json.RawMessage
	Grade         Grade
	Customer      *Customer
	Disabled      bool
	RefreshNeeded bool
	// RefreshReason is a sentence for users that explains why RefreshNeeded is set. It may be
	// empty.
	RefreshReason string
	// AppID is the client id of the application through which the account was connected. It is
	// empty if accounts on the platform are connected with a form.
	AppID string
	// Timezone is an IANA name or a fixed offset, in the format that tenancy.LoadZone accepts.
	Timezone string
	// Destination holds the hosts to which the channel's posts are sent, separated by commas. Only
	// the scheduler loads it. Example: pds.example:8443
	Destination string
	// CreatedAt is when the account was first connected; reconnecting does not change it.
	CreatedAt time.Time
	// ConnectedAt is when the account was last connected.
	ConnectedAt time.Time
}

// Grade rates how well a platform supports publishing a post exactly once. The database stores the
// letter.
type Grade string

// The grades, best to worst.
const (
	// GradeIdempotent: the platform deduplicates posts by a key or content address that we send.
	// Sending the same publication twice creates only one post.
	GradeIdempotent Grade = "A"
	// GradeTrackable: the platform reports a publication's outcome, given a handle that we store.
	GradeTrackable Grade = "B"
	// GradeMarked: a published post can be identified with certainty by a marker that we add to it.
	GradeMarked Grade = "C"
	// GradeSearchable: a published post can be found only by searching for its text and time.
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

// TriggerTool runs a tool provided by a channel's platform.
type TriggerTool struct {
	Channel string
	Name    string
	// Data holds strings, numbers (float64) and booleans, keyed by field. Fields not declared by
	// the tool are ignored.
	Data map[string]any
}
