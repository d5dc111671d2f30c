package publishing

import (
	"encoding/json"
	"maps"
	"math"
	"time"

	"github.com/google/uuid"

	"crier/tenancy"
)

// Lease is the right of one process start to schedule the posts of some shards. Every statement that schedules checks
// in the database that the shards still belong to Holder, so a stale Lease changes nothing.
type Lease struct {
	// Holder is the id of the process start.
	Holder uuid.UUID
	Shards []int16
}

// Want is how many posts one organization may have claimed by a claim.
type Want struct {
	Org tenancy.OrgID
	// Permits is the largest number of posts to claim.
	Permits int
	// After is the channel after which the claim begins: channels are visited in the order of their ids. Zero begins
	// with the first one.
	After ChannelID
}

// ClaimWindow is how many channels of one organization a claim usually visits. It bounds what an organization with
// thousands of channels costs one claim.
const ClaimWindow = 256

// ClaimLimits are the limits that a claim shares with the other posts of its process.
type ClaimLimits struct {
	// Platforms has the number of posts of each platform that may be claimed. A platform that is not in it has no
	// limit.
	Platforms map[string]int
	// Busy has the number of permits that the posts of each destination hold.
	Busy map[string]int
	// Free is the number of permits that no post holds. A destination gets a permit only while it holds fewer than are
	// free, so that one destination never holds more than half of them.
	Free int
}

// NoClaimLimits returns the limits of a process that is sending nothing.
func NoClaimLimits() ClaimLimits { return ClaimLimits{Free: math.MaxInt32} }

// Claimed is a post that one process may send, as long as Token is the claim token of the post's row.
type Claimed struct {
	Org       tenancy.OrgID
	Post      PostID
	Channel   ChannelID
	Connector string
	// Destination is that of its calls, in the form of the keys of ClaimLimits.Busy: "@" and the host.
	Destination string
	Token       uuid.UUID
	// Attempt is the number of this claim among those of the post, beginning with 1.
	Attempt int
	// Due is when the post was to be published. It may be long ago.
	Due time.Time
}

// ClaimResult is the result of one claim, or of several that Add has merged.
type ClaimResult struct {
	Claimed []Claimed
	// Next is when each organization has a post due on a free channel that was visited. An organization without such a
	// channel is not in it.
	Next map[tenancy.OrgID]time.Time
	// More is the last channel that was visited, of organizations that may have more channels.
	More map[tenancy.OrgID]ChannelID
	// AtLimit are the platforms and destinations at their limit for which each organization has something due. They are
	// not in Next.
	AtLimit map[tenancy.OrgID][]string
	// Now is the time of the database.
	Now time.Time
}

// NewClaimResult returns an empty result with the maps that Add writes to; the zero value has none.
func NewClaimResult() ClaimResult {
	return ClaimResult{
		Next: map[tenancy.OrgID]time.Time{}, More: map[tenancy.OrgID]ChannelID{}, AtLimit: map[tenancy.OrgID][]string{},
	}
}

// Add merges the result of another claim of the same process into r. It keeps the earliest time of Next and the latest
// Now; in More, the channel of other wins.
func (r *ClaimResult) Add(other ClaimResult) {
	r.Claimed = append(r.Claimed, other.Claimed...)
	for org, at := range other.Next {
		if first, ok := r.Next[org]; !ok || at.Before(first) {
			r.Next[org] = at
		}
	}
	maps.Copy(r.More, other.More)
	for org, names := range other.AtLimit {
		r.AtLimit[org] = append(r.AtLimit[org], names...)
	}
	if other.Now.After(r.Now) {
		r.Now = other.Now
	}
}

// Phase is how far the send of one part has come. A CHECK constraint of the table carries the same list.
type Phase string

const (
	PhasePreparing  Phase = "preparing"  // nothing irreversible was done
	PhaseCommitting Phase = "committing" // the irreversible call comes next, is in progress, or has no known outcome
	PhaseDone       Phase = "done"       // the part is on the platform
	PhaseFailed     Phase = "failed"     // the part is not on the platform and is not sent again
)

// Publication is one send of one part, with an identity that survives a restore of the database: ID is derived from the
// post, the part, the number of the republication and the due time.
type Publication struct {
	ID   PublicationID
	Post PostID
	Part PartID
	// Position is that of the part in its group; the first is 0.
	Position int
	// Due is the time that the send was booked for. It never changes: it is part of the identity of the send.
	Due time.Time
	// ClaimedAt is the time of the first claim, stored before the first call.
	ClaimedAt time.Time
	// MarkedAt is when the first irreversible call was announced; zero before.
	MarkedAt time.Time
	// SentTo is the destination of the calls that may have arrived, "*" for several, "" before the first call.
	SentTo string
	Phase  Phase
	// Handle is what the connector's last Prepare returned.
	Handle    json.RawMessage
	ReleaseID *string
	URL       *string
	// Ref is the connector's reference to the published part, from which follow-up parts are made.
	Ref     json.RawMessage
	Content Content
	Media   []AttachedMedium
}

// AttachedMedium is an Attachment whose medium is loaded.
type AttachedMedium struct {
	Medium
	Alt string
}

// Work is everything that sending one claimed post needs.
type Work struct {
	Org   tenancy.OrgID
	Post  PostID
	Group GroupID
	// Token is the claim token.
	Token uuid.UUID
	// Attempt is the number of this claim among those of the post, beginning with 1.
	Attempt int
	// Failing is the time since the first of the transient failures in a row; zero at a first try.
	Failing time.Duration
	// Due is when the post was to be published. A retry does not change it.
	Due      time.Time
	Settings json.RawMessage
	Channel  Channel
	// Disconnected is set when the channel was disconnected: the post fails with CodeChannelDisabled.
	Disconnected bool
	// Unapproved is set if the post was approved with other content. The post then fails with
	// CodeUnapproved.
	Unapproved bool
	// Credential is sealed with the keyring of the credentials.
	Credential []byte
	// Parts are the publications of this post, in order.
	Parts []Publication
	// Before are the published parts of the posts of the thread that precede this one, in order.
	Before []Publication
	// Committing is when the latest irreversible call was announced; zero before.
	Committing time.Time
	// CallEnded is set when the sender saw the end of its call, so that none is in progress.
	CallEnded bool
	// ReconcileAttempts is the number of times that the platform was asked for the unknown outcome.
	ReconcileAttempts int
	// Reaps is the number of claims in a row that ended with their process.
	Reaps int
	// MaybeSent is set when a call of the current part may have reached the platform before this claim.
	MaybeSent bool
}

// Result is how a claim or the reconciliation of an unknown outcome ended.
type Result string

const (
	// ResultPublished means that every part is on the platform.
	ResultPublished Result = "published"
	// ResultResume means that this part is on the platform and later ones are not.
	ResultResume Result = "resume"
	// ResultError means that the post is given up.
	ResultError Result = "error"
	// ResultRetry means that nothing was sent: the post goes back to the queue. Without a publication it does not count
	// as a failure.
	ResultRetry Result = "retry"
	// ResultUnknown means that the platform may have published the part.
	ResultUnknown Result = "unknown"
	// ResultLater means that the outcome is still unknown, and that the platform must be asked again.
	ResultLater Result = "later"
)

// Outcome is how the claim of one post ended. Publication is the part that it is about, zero when none was reached.
type Outcome struct {
	Org    tenancy.OrgID
	Post   PostID
	Token  uuid.UUID
	Result Result
	// Error is a sentence for people, Code is one of the error codes.
	Error string
	Code  string
	// After is the time until the next try, or until the platform is asked again.
	After time.Duration
	// CallEnded is set with ResultUnknown when the call of this process has ended.
	CallEnded bool
	// Proven is set with ResultRetry and ResultError when it is proved that no earlier call published anything.
	Proven      bool
	Publication PublicationID
	// ReleaseID, ReleaseURL and Ref are those of the part.
	ReleaseID  string
	ReleaseURL string
	Ref        json.RawMessage
	// RootID and RootURL are the release of the first part of the post.
	RootID  string
	RootURL string
}

// Finished is what storing an Outcome changed.
type Finished struct {
	Org  tenancy.OrgID
	Post PostID
	// State is the new state of the post, empty when its claim had ended before.
	State State
	// Due is when the post is due, if State is StateQueue.
	Due time.Time
	// PublishedTwice is set when the platform has published the part twice, under two release ids.
	PublishedTwice bool
	// Locked is set when another transaction has locked the post: the outcome is not stored and must be stored again.
	Locked bool
}

// UnknownPost is a post with an unknown outcome for which the platform must be asked now.
type UnknownPost struct {
	Post PostID
	Org  tenancy.OrgID
	// Destination is that of its calls, as in Claimed.
	Destination string
	// Stale is set when the outcome has been unknown for longer than RECONCILE_WINDOW.
	Stale bool
}
