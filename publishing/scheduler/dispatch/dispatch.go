// Package dispatch contains what the scheduler, the actors and the worker pass to each other:
// leases, claims, the work for a send, and outcomes.
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

// Lease is one process's right to schedule the posts in some shards. Every scheduling statement
// checks in the database that the shards still belong to Holder, so a stale Lease has no effect.
type Lease struct {
	// Holder identifies this run of the process. A process that restarts is a new holder.
	Holder uuid.UUID
	Shards []int16
}

// Want says how many of an organization's posts a claim may take.
type Want struct {
	Org tenancy.OrgID
	// Permits is the maximum number of posts to claim.
	Permits int
	// After is the channel after which the claim starts; channels are visited in id order. The zero
	// value starts with the first channel.
	After publishing.ChannelID
}

// ClaimWindow is how many of an organization's channels a claim usually visits. It limits the cost
// of a claim for an organization with thousands of channels.
const ClaimWindow = 256

// ClaimLimits holds the limits that a claim shares with all other posts in the process.
type ClaimLimits struct {
	// Platforms is the number of posts that may be claimed for each platform. A platform that is
	// not in the map has no limit.
	Platforms map[string]int
	// Busy is the number of permits that posts hold for each destination. A key is "@" followed by
	// a host. Example: @bsky.social
	Busy map[string]int
	// Free is the number of permits that no post holds. A destination gets a permit only if it
	// holds fewer permits than are free, so one destination never holds more than half of all
	// permits.
	Free int
}

// NoClaimLimits returns the limits for a process that is sending nothing.
func NoClaimLimits() ClaimLimits { return ClaimLimits{Free: math.MaxInt32} }

// Claimed is a post that one process may send as long as Token is the claim token in the post's
// row.
type Claimed struct {
	Org       tenancy.OrgID
	Post      publishing.PostID
	Channel   publishing.ChannelID
	Connector string
	// Destination is where the post's calls go, in the form of a ClaimLimits.Busy key.
	Destination string
	Token       uuid.UUID
	// Attempt is the number of this claim of the post, starting at 1.
	Attempt int
	// Due is when the post was to be published, which may be long ago.
	Due time.Time
}

// ClaimResult is the result of one claim, or of several merged by Add.
type ClaimResult struct {
	Claimed []Claimed
	// Next is when each organization next has a post due on a visited channel that is free.
	// Organizations with no such post are missing.
	Next map[tenancy.OrgID]time.Time
	// More is the last visited channel of each organization that may have more channels.
	More map[tenancy.OrgID]publishing.ChannelID
	// AtLimit lists, for each organization, the platforms and destinations that have posts due but
	// are at their limit. Those posts are not in Next.
	AtLimit map[tenancy.OrgID][]string
	// Now is the database's time.
	Now time.Time
}

// NewClaimResult returns an empty result whose maps are ready for Add. In the zero value, the maps
// are nil.
func NewClaimResult() ClaimResult {
	return ClaimResult{
		Next: map[tenancy.OrgID]time.Time{}, More: map[tenancy.OrgID]publishing.ChannelID{}, AtLimit: map[tenancy.OrgID][]string{},
	}
}

// Add merges the result of another claim by the same process into r. It keeps the earliest times in
// Next and the latest Now. In More, the channels in other win.
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

// Phase is how far the send of one part has progressed. A CHECK constraint in the database lists
// the same values.
type Phase string

const (
	PhasePreparing  Phase = "preparing"  // nothing irreversible was done
	PhaseCommitting Phase = "committing" // the irreversible call is next, in progress or unresolved
	PhaseDone       Phase = "done"       // the part is on the platform
	PhaseFailed     Phase = "failed"     // the part is not on the platform and is not sent again
)

// Publication is one send of one part. It keeps its identity if the database is restored, because
// ID is derived from the post, the part, the republish number and the due time.
type Publication struct {
	ID   publishing.PublicationID
	Post publishing.PostID
	Part publishing.PartID
	// Position is the part's position in its group, starting at 0.
	Position int
	// Due is the time for which the send was scheduled. It never changes, because it is part of the
	// send's identity.
	Due time.Time
	// ClaimedAt is the time of the first claim. It is stored before the first call.
	ClaimedAt time.Time
	// MarkedAt is when the first irreversible call was marked, or zero before that.
	MarkedAt time.Time
	// SentTo is the host to which calls that may have arrived were sent. It is "*" if there are
	// several hosts, and "" before the first call. Example: bsky.social
	SentTo string
	Phase  Phase
	// Handle is what the connector's last Prepare returned.
	Handle    json.RawMessage
	ReleaseID *string
	URL       *string
	// Ref is the connector's reference to the published part, which later parts build on.
	Ref     json.RawMessage
	Content publishing.Content
	Media   []AttachedMedium
}

// AttachedMedium is an Attachment with its medium loaded.
type AttachedMedium struct {
	publishing.Medium
	Alt string
}

// Work holds everything needed to send one claimed post.
type Work struct {
	Org   tenancy.OrgID
	Post  publishing.PostID
	Group publishing.GroupID
	// Token is the claim token.
	Token uuid.UUID
	// Attempt is the number of this claim of the post, starting at 1.
	Attempt int
	// Failing is the time since the first of the current consecutive transient failures, or zero if
	// there are none.
	Failing time.Duration
	// Due is when the post was to be published. A retry does not change it.
	Due      time.Time
	Settings json.RawMessage
	Channel  publishing.Channel
	// Disconnected is set if the channel was disconnected. The post then fails with
	// CodeChannelDisabled.
	Disconnected bool
	// Unapproved is set if the post's content is not what was approved. The post then fails with
	// CodeUnapproved.
	Unapproved bool
	// Credential is the channel's credential, sealed with the credential keyring.
	Credential []byte
	// Parts are the publications of this post, in order.
	Parts []Publication
	// Before holds the published parts of the posts that precede this one in the thread, in order.
	Before []Publication
	// Committing is when the latest irreversible call was marked, or zero before that.
	Committing time.Time
	// CallEnded is set if the sender saw its call end, so that no call is in progress.
	CallEnded bool
	// ReconcileAttempts is how many times the platform has been asked about the unknown outcome.
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
	// ResultError means that the post was abandoned.
	ResultError Result = "error"
	// ResultRetry means that nothing was sent and the post goes back to the queue. If the outcome
	// has no publication, this does not count as a failure.
	ResultRetry Result = "retry"
	// ResultUnknown means that the platform may have published the part.
	ResultUnknown Result = "unknown"
	// ResultLater means that the outcome is still unknown and the platform must be asked again.
	ResultLater Result = "later"
)

// Outcome is how a post's claim ended. Publication identifies the part that the outcome concerns;
// it is zero if no part was reached.
type Outcome struct {
	Org    tenancy.OrgID
	Post   publishing.PostID
	Token  uuid.UUID
	Result Result
	// Error is a human-readable sentence. Code is one of the error codes, such as
	// publishing.CodeRejected.
	Error string
	Code  string
	// After is the time until the next attempt, or until the platform is asked again.
	After time.Duration
	// CallEnded is set with ResultUnknown if this process's call has ended.
	CallEnded bool
	// Proven is set with ResultRetry and ResultError if it is proven that no earlier call published
	// anything.
	Proven      bool
	Publication publishing.PublicationID
	// ReleaseID, ReleaseURL and Ref belong to the part.
	ReleaseID  string
	ReleaseURL string
	Ref        json.RawMessage
	// RootID and RootURL are the release id and URL of the post's first part.
	RootID  string
	RootURL string
}

// Finished is what storing an Outcome changed.
type Finished struct {
	Org  tenancy.OrgID
	Post publishing.PostID
	// State is the post's new state, or empty if its claim had already ended.
	State publishing.State
	// Due is when the post is due, if State is StateQueue.
	Due time.Time
	// PublishedTwice is set if the platform published the part twice, under two release ids.
	PublishedTwice bool
	// Locked is set if another transaction has locked the post. The outcome has then not been
	// stored, and must be stored again.
	Locked bool
}

// UnknownPost is a post with an unknown outcome whose platform is due to be asked.
type UnknownPost struct {
	Post publishing.PostID
	Org  tenancy.OrgID
	// Destination is where the post's calls go, as in Claimed.
	Destination string
	// Stale is set if the outcome has been unknown for longer than RECONCILE_WINDOW.
	Stale bool
}
