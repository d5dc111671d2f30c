// Package dispatch contains what the scheduler, the actors and the worker pass to each other: leases, claims, the work of
// a send, and outcomes.
package dispatch

import (
	"encoding/json"
	"maps"
	"math"
	"time"

	"github.com/google/uuid"

	"crier/publishing"
	"crier/tenancy"
)

// Lease is the right of one process start to schedule the posts of some shards. Every statement
// that schedules checks in the database that the shards still belong to Holder, so a stale Lease
// changes nothing.
type Lease struct {
	// Holder is the id of the process start.
	Holder uuid.UUID
	Shards []int16
}

// Want is how many posts of one organization a claim may take.
type Want struct {
	Org tenancy.OrgID
	// Permits is the largest number of posts to claim.
	Permits int
	// After is the channel after which the claim starts; channels are visited in id order. The zero
	// value starts with the first channel.
	After publishing.ChannelID
}

// ClaimWindow is how many channels of one organization a claim usually visits. It bounds the cost
// of a claim for an organization with thousands of channels.
const ClaimWindow = 256

// ClaimLimits are the limits that a claim shares with the other posts of its process.
type ClaimLimits struct {
	// Platforms is the number of posts that may be claimed for each platform. A platform that is
	// missing has no limit.
	Platforms map[string]int
	// Busy is the number of permits that the posts of each destination hold. A key is "@" and a
	// host. Example: @bsky.social
	Busy map[string]int
	// Free is the number of permits that no post holds. A destination gets a permit only while it
	// holds fewer than are free, so one destination never holds more than half of them.
	Free int
}

// NoClaimLimits returns the limits of a process that is sending nothing.
func NoClaimLimits() ClaimLimits { return ClaimLimits{Free: math.MaxInt32} }

// Claimed is a post that one process may send as long as Token is the claim token in the post's
// row.
type Claimed struct {
	Org       tenancy.OrgID
	Post      publishing.PostID
	Channel   publishing.ChannelID
	Connector string
	// Destination is where its calls go, in the form of a key of ClaimLimits.Busy.
	Destination string
	Token       uuid.UUID
	// Attempt is the number of this claim of the post, starting at 1.
	Attempt int
	// Due is when the post was to be published. That may be long ago.
	Due time.Time
}

// ClaimResult is the result of one claim, or of several merged by Add.
type ClaimResult struct {
	Claimed []Claimed
	// Next is when each organization has a post due on a visited channel that is free. An
	// organization without such a channel is missing.
	Next map[tenancy.OrgID]time.Time
	// More is the last visited channel of each organization that may have more channels.
	More map[tenancy.OrgID]publishing.ChannelID
	// AtLimit lists for each organization the platforms and destinations that are at their limit
	// although something is due for them. Their posts are not in Next.
	AtLimit map[tenancy.OrgID][]string
	// Now is the database's time.
	Now time.Time
}

// NewClaimResult returns an empty result with the maps that Add writes to. The zero value has no
// maps.
func NewClaimResult() ClaimResult {
	return ClaimResult{
		Next: map[tenancy.OrgID]time.Time{}, More: map[tenancy.OrgID]publishing.ChannelID{}, AtLimit: map[tenancy.OrgID][]string{},
	}
}

// Add merges the result of another claim of the same process into r. It keeps the earliest time of
// Next and the latest Now. In More, the channel of other wins.
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

// Phase is how far the send of one part has come. A CHECK constraint of the table carries the same
// list.
type Phase string

const (
	PhasePreparing  Phase = "preparing"  // nothing irreversible was done
	PhaseCommitting Phase = "committing" // the irreversible call is next, in progress or unresolved
	PhaseDone       Phase = "done"       // the part is on the platform
	PhaseFailed     Phase = "failed"     // the part is not on the platform and is not sent again
)

// Publication is one send of one part. Its identity survives a restore of the database, because ID
// is derived from the post, the part, the number of the republication and the due time.
type Publication struct {
	ID   publishing.PublicationID
	Post publishing.PostID
	Part publishing.PartID
	// Position is the position of the part in its group; the first is 0.
	Position int
	// Due is the time for which the send was booked. It never changes, because it is part of the
	// send's identity.
	Due time.Time
	// ClaimedAt is the time of the first claim. It is stored before the first call.
	ClaimedAt time.Time
	// MarkedAt is when the first irreversible call was announced, zero before that.
	MarkedAt time.Time
	// SentTo is the destination of the calls that may have arrived. It is "*" for several
	// destinations and "" before the first call.
	SentTo string
	Phase  Phase
	// Handle is what the connector's last Prepare returned.
	Handle    json.RawMessage
	ReleaseID *string
	URL       *string
	// Ref is the connector's reference to the published part, which follow-up parts are based on.
	Ref     json.RawMessage
	Content publishing.Content
	Media   []AttachedMedium
}

// AttachedMedium is an Attachment whose medium is loaded.
type AttachedMedium struct {
	publishing.Medium
	Alt string
}

// Work is everything that sending one claimed post needs.
type Work struct {
	Org   tenancy.OrgID
	Post  publishing.PostID
	Group publishing.GroupID
	// Token is the claim token.
	Token uuid.UUID
	// Attempt is the number of this claim of the post, starting at 1.
	Attempt int
	// Failing is the time since the first of the current run of transient failures, zero on a first
	// try.
	Failing time.Duration
	// Due is when the post was to be published. A retry does not change it.
	Due      time.Time
	Settings json.RawMessage
	Channel  publishing.Channel
	// Disconnected is set if the channel was disconnected. The post then fails with
	// CodeChannelDisabled.
	Disconnected bool
	// Unapproved is set if the post was approved with other content. The post then fails with
	// CodeUnapproved.
	Unapproved bool
	// Credential is sealed with the keyring of the credentials.
	Credential []byte
	// Parts are the publications of this post, in order.
	Parts []Publication
	// Before are the published parts of the posts that precede this one in the thread, in order.
	Before []Publication
	// Committing is when the latest irreversible call was announced, zero before that.
	Committing time.Time
	// CallEnded is set if the sender saw its call end, so that no call is in progress.
	CallEnded bool
	// ReconcileAttempts is how often the platform was asked about the unknown outcome.
	ReconcileAttempts int
	// Reaps is the number of consecutive claims that ended because their process did.
	Reaps int
	// MaybeSent is set if a call for the current part may have reached the platform before this
	// claim.
	MaybeSent bool
}

// Result is how a claim or the reconciliation of an unknown outcome ended.
type Result string

const (
	// ResultPublished means that every part is on the platform.
	ResultPublished Result = "published"
	// ResultResume means that this part is on the platform and later ones are not.
	ResultResume Result = "resume"
	// ResultError means that the post was given up.
	ResultError Result = "error"
	// ResultRetry means that nothing was sent and the post goes back to the queue. Without a
	// publication it does not count as a failure.
	ResultRetry Result = "retry"
	// ResultUnknown means that the platform may have published the part.
	ResultUnknown Result = "unknown"
	// ResultLater means that the outcome is still unknown and the platform must be asked again.
	ResultLater Result = "later"
)

// Outcome is how the claim of one post ended. Publication is the part that it concerns, zero if no
// part was reached.
type Outcome struct {
	Org    tenancy.OrgID
	Post   publishing.PostID
	Token  uuid.UUID
	Result Result
	// Error is a sentence for people. Code is one of the error codes.
	Error string
	Code  string
	// After is the time until the next try, or until the platform is asked again.
	After time.Duration
	// CallEnded is set with ResultUnknown if the call of this process has ended.
	CallEnded bool
	// Proven is set with ResultRetry and ResultError if it is proven that no earlier call published
	// anything.
	Proven      bool
	Publication publishing.PublicationID
	// ReleaseID, ReleaseURL and Ref belong to the part.
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
	Post publishing.PostID
	// State is the new state of the post, empty if its claim had already ended.
	State publishing.State
	// Due is when the post is due, if State is StateQueue.
	Due time.Time
	// PublishedTwice is set if the platform published the part twice, under two release ids.
	PublishedTwice bool
	// Locked is set if another transaction has locked the post. The outcome is then not stored, and
	// storing it must be retried.
	Locked bool
}

// UnknownPost is a post with an unknown outcome about which the platform must be asked now.
type UnknownPost struct {
	Post publishing.PostID
	Org  tenancy.OrgID
	// Destination is where its calls go, as in Claimed.
	Destination string
	// Stale is set if the outcome has been unknown for longer than RECONCILE_WINDOW.
	Stale bool
}
