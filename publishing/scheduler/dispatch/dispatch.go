// Package dispatch defines the data that the scheduler, the actors and the worker pass to each
// other: leases, claims, the work to be sent, and outcomes.
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

// Lease is one process's right to schedule the posts in certain shards. Every scheduling statement
// verifies that Holder still owns the shards, so a stale Lease has no effect.
type Lease struct {
	// Holder identifies the current run of a process. A process that restarts is a new holder.
	Holder uuid.UUID
	Shards []int16
}

// Want is a request to claim one organization's posts.
type Want struct {
	Org tenancy.OrgID
	// Permits is the maximum number of posts to claim.
	Permits int
	// After is the channel after which the claim starts. Channels are visited in id order. If After
	// is zero, the claim starts with the first channel.
	After publishing.ChannelID
}

// ClaimWindow is the usual number of channels that a claim visits per organization. It limits the
// cost of claims for organizations with thousands of channels.
const ClaimWindow = 256

// ClaimLimits holds limits on the total number of posts in a process, across all organizations.
type ClaimLimits struct {
	// Platforms holds the number of posts that may still be claimed for each platform. A platform
	// that is not in the map has no limit.
	Platforms map[string]int
	// Busy holds the number of permits held by each destination's posts. The key is "@" followed by
	// the host. Example: @bsky.social
	Busy map[string]int
	// Free is the number of permits that are not held by any post. A destination gets another
	// permit only if it holds fewer permits than are free. One destination therefore never holds
	// more than half of all permits.
	Free int
}

// NoClaimLimits returns the limits for a process that is not sending any posts.
func NoClaimLimits() ClaimLimits { return ClaimLimits{Free: math.MaxInt32} }

// Claimed is a post claimed by one process. The process may send the post as long as Token matches
// the claim token in the post's row.
type Claimed struct {
	Org       tenancy.OrgID
	Post      publishing.PostID
	Channel   publishing.ChannelID
	Connector string
	// Destination is the target of the post's calls, formatted as a ClaimLimits.Busy key.
	Destination string
	Token       uuid.UUID
	// Attempt is how many times this post has been claimed, including this claim. It starts at 1.
	Attempt int
	// Due is when the post was due to be published. The time can be far in the past.
	Due time.Time
}

// ClaimResult is the result of one claim, or of several merged by Add.
type ClaimResult struct {
	Claimed []Claimed
	// Next holds the next time at which each organization has a post due. Only free channels that
	// were visited are considered. Organizations without such a post are not in the map.
	Next map[tenancy.OrgID]time.Time
	// More holds the last visited channel for each organization that may have further channels.
	More map[tenancy.OrgID]publishing.ChannelID
	// AtLimit lists, for each organization, the platforms and destinations that have due posts but
	// have reached their limit. Next does not include those posts.
	AtLimit map[tenancy.OrgID][]string
	// Now is the database's time.
	Now time.Time
}

// NewClaimResult returns an empty result whose maps are ready for Add. In the zero ClaimResult, the
// maps are nil.
func NewClaimResult() ClaimResult {
	return ClaimResult{
		Next: map[tenancy.OrgID]time.Time{}, More: map[tenancy.OrgID]publishing.ChannelID{},
		AtLimit: map[tenancy.OrgID][]string{},
	}
}

// Add merges the result of another claim by the same process into r. For Next, it keeps the earlier
// time; for Now, the later time. For More, the channels in other replace those in r.
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

// Phase is the stage that the send of one part has reached. A CHECK constraint in the database
// lists the same values.
type Phase string

const (
	PhasePreparing  Phase = "preparing"  // nothing irreversible was done
	PhaseCommitting Phase = "committing" // the irreversible call is next, in progress or unresolved
	PhaseDone       Phase = "done"       // the part is on the platform
	PhaseFailed     Phase = "failed"     // the part is not on the platform and is not sent again
)

// Publication is one send of one part. ID is derived from the post, the part, the republish number
// and the due time. The send therefore keeps its identity if the database is restored from a
// backup.
type Publication struct {
	ID   publishing.PublicationID
	Post publishing.PostID
	Part publishing.PartID
	// Position is the part's position in its group, starting at 0.
	Position int
	// Due is the time for which the send was scheduled. Because it is part of the send's identity,
	// it never changes.
	Due time.Time
	// ClaimedAt is the time of the first claim. It is stored before the first call to the platform.
	ClaimedAt time.Time
	// MarkedAt is when an irreversible call was first marked, or zero if none has been marked.
	MarkedAt time.Time
	// SentTo is the host that may have received calls. It is "*" if several hosts may have received
	// calls, and "" before the first call. Example: bsky.social
	SentTo string
	Phase  Phase
	// Handle is the handle that the connector's Prepare last returned.
	Handle    json.RawMessage
	ReleaseID *string
	URL       *string
	// Ref is the connector's reference to the published part. Later parts use the reference, for
	// example to reply to this part.
	Ref     json.RawMessage
	Content publishing.Content
	Media   []AttachedMedium
}

// AttachedMedium is an Attachment together with its medium.
type AttachedMedium struct {
	publishing.Medium
	Alt string
}

// Work holds all the data needed to send one claimed post.
type Work struct {
	Org   tenancy.OrgID
	Post  publishing.PostID
	Group publishing.GroupID
	// Token is the claim token.
	Token uuid.UUID
	// Attempt is how many times this post has been claimed, including this claim. It starts at 1.
	Attempt int
	// Failing is the time since the first of the current consecutive transient failures, or zero if
	// there are none.
	Failing time.Duration
	// Due is when the post was due to be published. A retry does not change it.
	Due      time.Time
	Settings json.RawMessage
	Channel  publishing.Channel
	// Disconnected is set if the channel was disconnected. In that case, the post fails with
	// CodeChannelDisabled.
	Disconnected bool
	// Unapproved is set if the post's content differs from the approved content. In that case, the
	// post fails with CodeUnapproved.
	Unapproved bool
	// Credential is the channel's credential, encrypted with the keyring for credentials.
	Credential []byte
	// Parts holds the publications of this post, in order.
	Parts []Publication
	// Before holds the published parts of the earlier posts in the thread, in order.
	Before []Publication
	// Committing is when the last irreversible call was marked, or zero if none has been marked.
	Committing time.Time
	// CallEnded is set if the sender saw its call end. In that case, no call is in progress.
	CallEnded bool
	// ReconcileAttempts is how many times the platform has been queried about the unknown outcome.
	ReconcileAttempts int
	// Reaps is the number of consecutive claims that were reaped. A claim is reaped if it has
	// expired or its process no longer exists.
	Reaps int
	// MaybeSent is set if a call for the current part may have reached the platform before this
	// claim.
	MaybeSent bool
}

// Result describes how a claim, or the reconciliation of an unknown outcome, ended.
type Result string

const (
	// ResultPublished means that every part is on the platform.
	ResultPublished Result = "published"
	// ResultResume means that this part is on the platform, but later parts are not.
	ResultResume Result = "resume"
	// ResultError means that the post was abandoned.
	ResultError Result = "error"
	// ResultRetry means that nothing was sent and the post returns to the queue. If
	// Outcome.Publication is zero, the retry does not count as a failure.
	ResultRetry Result = "retry"
	// ResultUnknown means that the platform may have published the part.
	ResultUnknown Result = "unknown"
	// ResultLater means that the outcome is still unknown and the platform must be queried again
	// later.
	ResultLater Result = "later"
)

// Outcome describes how a post's claim ended. Publication identifies the part that the outcome
// concerns, and is zero if no part was reached.
type Outcome struct {
	Org    tenancy.OrgID
	Post   publishing.PostID
	Token  uuid.UUID
	Result Result
	// Error is a human-readable sentence. Code is an error code such as publishing.CodeRejected.
	Error string
	Code  string
	// After is how long to wait before the next attempt, or before the platform is queried again.
	After time.Duration
	// CallEnded applies to ResultUnknown. It means that the call made by this process has ended.
	CallEnded bool
	// Proven is set with ResultRetry or ResultError if it is proven that no earlier call published
	// anything.
	Proven      bool
	Publication publishing.PublicationID
	// ReleaseID, ReleaseURL and Ref belong to the part identified by Publication.
	ReleaseID  string
	ReleaseURL string
	Ref        json.RawMessage
	// RootID and RootURL are the release id and the release URL of the post's first part.
	RootID  string
	RootURL string
}

// Finished is what storing an Outcome changed.
type Finished struct {
	Org  tenancy.OrgID
	Post publishing.PostID
	// State is the post's new state. It is empty if the claim had already ended.
	State publishing.State
	// Due is when the post is due, if State is StateQueue.
	Due time.Time
	// PublishedTwice is set if the platform published the part twice, under two release ids.
	PublishedTwice bool
	// Locked is set if another transaction has locked the post. In that case, the outcome was not
	// stored and must be stored again.
	Locked bool
}

// UnknownPost is a post with an unknown outcome. Its platform is due to be queried about the
// outcome.
type UnknownPost struct {
	Post publishing.PostID
	Org  tenancy.OrgID
	// Destination is the target of the post's calls, as in Claimed.
	Destination string
	// Stale is set if the outcome has been unknown for longer than RECONCILE_WINDOW.
	Stale bool
}
