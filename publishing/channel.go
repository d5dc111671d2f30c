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

// Grade says how sure a platform lets us be that a post goes out once.
type Grade string

// The grades, best to worst.
const (
	GradeA Grade = "A" // native key or content address: the same publication sent twice is one post
	GradeB Grade = "B" // a stored handle whose state can be asked
	GradeC Grade = "C" // a marker that a read-back finds for sure
	GradeD Grade = "D" // a read-back by text and time only
	GradeE Grade = "E" // it can never be asked
)

// Valid tells whether the grade exists.
func (g Grade) Valid() bool { return len(g) == 1 && g >= GradeA && g <= GradeE }

// Deduplicates tells whether an absent publication may be sent again at once under its own key.
func (g Grade) Deduplicates() bool { return g == GradeA || g == GradeB }

// Askable tells whether the platform can say what became of a publication.
func (g Grade) Askable() bool { return g != GradeE }
