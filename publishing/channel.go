package publishing

import (
	"encoding/json"
	"time"

	"crier/tenancy"
)

// MaxChannels is how many channels any organization can have: a list of its channels holds them all in memory, about
// 3 KB each.
const MaxChannels = 10_000

// Channel is a connected account on a platform.
type Channel struct {
	ID            ChannelID
	Org           tenancy.OrgID
	Connector     string // lower-case platform identifier
	Name          string
	Profile       string // handle
	Picture       string // URL, may be empty
	AccountID     string // the platform's own id
	Account       json.RawMessage
	Grade         Grade
	Customer      *Customer
	Disabled      bool
	RefreshNeeded bool
	Timezone      string // as tenancy.LoadZone reads it: an IANA name or a fixed offset
	Destination   string // host that its posts go to; only the sender reads it
	CreatedAt     time.Time
}

// Grade is what a platform offers so that a post goes out exactly once. The letter is what the table stores.
type Grade string

// The grades, best to worst.
const (
	// GradeIdempotent: the platform de-duplicates by a key or a content address of ours, so that sending the same
	// publication twice makes one post.
	GradeIdempotent Grade = "A"
	// GradeTrackable: a stored handle says what became of the publication.
	GradeTrackable Grade = "B"
	// GradeMarked: a published post can be found with certainty by a mark of ours.
	GradeMarked Grade = "C"
	// GradeSearchable: a published post can be looked for by its text and time only.
	GradeSearchable Grade = "D"
	// GradeOpaque: the platform cannot be asked.
	GradeOpaque Grade = "E"
)

// Valid returns whether the grade exists.
func (g Grade) Valid() bool { return len(g) == 1 && g >= GradeIdempotent && g <= GradeOpaque }

// Deduplicates returns whether an absent publication may be sent again at once under its own key.
func (g Grade) Deduplicates() bool { return g == GradeIdempotent || g == GradeTrackable }

// Askable returns whether the platform can say what became of a publication.
func (g Grade) Askable() bool { return g != GradeOpaque }
