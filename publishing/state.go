package publishing

import (
	"time"

	"crier/platform/fault"
)

// State is the state of a post. A CHECK constraint on the table lists the same values.
type State string

// Post states. To clients, WAITING, PUBLISHING and UNKNOWN appear as QUEUE.
const (
	StateDraft State = "DRAFT"
	StateQueue State = "QUEUE"
	// StateWaiting is the state of a follower whose predecessor is not published yet.
	StateWaiting State = "WAITING"
	// StatePublishing is the state of a post that a worker has claimed.
	StatePublishing State = "PUBLISHING"
	// StateUnknown is the state of a post that was sent, but for which no response was received.
	// The platform may have published the post.
	StateUnknown   State = "UNKNOWN"
	StatePublished State = "PUBLISHED"
	StateError     State = "ERROR"
)

// States returns all states, in the order in which a post usually passes through them.
func States() []State {
	return []State{StateDraft, StateWaiting, StateQueue, StatePublishing, StateUnknown, StatePublished, StateError}
}

// Valid reports whether s is one of States, including the states that clients see as QUEUE.
func (s State) Valid() bool {
	for _, v := range States() {
		if s == v {
			return true
		}
	}
	return false
}

// Claimed reports whether the post is being sent or has an unknown outcome. Such a post cannot be
// edited.
func (s State) Claimed() bool { return s == StatePublishing || s == StateUnknown }

// Error codes of posts in StateError, as shown to clients.
const (
	CodeMissed          = "missed"
	CodeOutcomeUnknown  = "outcome_unknown"
	CodeRejected        = "rejected"
	CodeRetriesUsedUp   = "retries_used_up"
	CodeChannelDisabled = "channel_disabled"
	CodePredecessor     = "predecessor_failed"
	CodeTooLong         = "took_too_long"
	// CodeUnapproved means that the post's content differs from what was approved.
	CodeUnapproved = "unapproved"
	// CodeQuota means that an occurrence of a repeated post exceeded the plan's limit when the
	// occurrence was stored.
	CodeQuota = "quota"
	// CodeDeleted means that the post was deleted while it was being published. The code appears
	// only in webhooks.
	CodeDeleted = "deleted"
)

// ErrorCode is an error code with its meaning and remedy, written for developers of API clients.
type ErrorCode struct{ Code, Meaning, Remedy string }

// ErrorCodes returns every error code.
func ErrorCodes() []ErrorCode {
	return []ErrorCode{
		{
			Code:    CodeRejected,
			Meaning: "The platform rejected the post, or the post cannot be sent as it is. It was not published.",
			Remedy:  "Fix the problem that error describes, then schedule the post again.",
		},
		{
			Code:    CodeRetriesUsedUp,
			Meaning: "The platform kept failing or could not be reached until the retries ran out.",
			Remedy: "Read error, which also says whether part of the thread was published, and schedule the post " +
				"again later.",
		},
		{
			Code:    CodeOutcomeUnknown,
			Meaning: "The platform was called, but the service could not determine whether the post was published.",
			Remedy: "Check the platform first. Only if the post is not there, send PUT /posts/{id}/status " +
				"with republish: true.",
		},
		{
			Code:    CodeMissed,
			Meaning: "The post could not be sent when it was due, for example because the channel was paused.",
			Remedy:  "Schedule the post again if it still matters.",
		},
		{
			Code:    CodeChannelDisabled,
			Meaning: "The channel was disabled or disconnected when the post was due.",
			Remedy:  "Enable or connect the channel, then schedule the post again.",
		},
		{
			Code:    CodePredecessor,
			Meaning: "The previous part failed, so this part was not sent.",
			Remedy:  "Fix the previous part; its error has the reason.",
		},
		{
			Code:    CodeTooLong,
			Meaning: "The service could not finish the post: its process kept stopping, or publishing took too long.",
			Remedy:  "Schedule the post again. If it fails again, tell the operator of the service.",
		},
		{
			Code:    CodeUnapproved,
			Meaning: "The post's content differs from what was approved, so the post was not published.",
			Remedy:  "Make the post a draft, and request approval again.",
		},
		{
			Code:    CodeQuota,
			Meaning: "This occurrence of a repeated post would have exceeded the plan limit.",
			Remedy:  "Change the plan, or wait for the next billing month.",
		},
		{
			Code:    CodeDeleted,
			Meaning: "The post was deleted while it was being published.",
			Remedy:  "Check the platform: part of the post may already have been published.",
		},
	}
}

// MaybeSentAdvice is appended to the error message of a post that was abandoned but may have been
// published.
const MaybeSentAdvice = " A call for it may have reached the platform but was never answered: " +
	"check there before publishing it again."

// publishingWait is how long a client should wait before trying again if the post is being
// published. unknownWait is how long to wait if its outcome is unknown.
const (
	publishingWait = 5 * time.Second
	unknownWait    = time.Minute
)

// Move returns nil if a user may move a post to DRAFT or QUEUE. Otherwise, it returns a Conflict
// fault that explains why not. published means that some part of the post is on the platform.
//
// A claimed post cannot be moved. The Conflict fault has a RetryAfter only if republish is not set.
// With republish, a retry could publish the post again, because the publication in progress may be
// the result of an earlier request with republish.
//
// If a post has been or may have been published, it can be moved only if republish is set. There is
// one exception: a post that only may have been published can be moved to DRAFT. It stays marked as
// possibly published.
func Move(state, to State, outcomeUnknown, published, republish bool) error {
	const op = "publishing.Move"
	if state.Claimed() && republish {
		return fault.New(fault.Conflict, op, "The post is being published right now, perhaps by an earlier request to "+
			"publish it again; read the post before you try that again.")
	}
	if state.Claimed() {
		wait := publishingWait
		if state == StateUnknown {
			wait = unknownWait
		}
		return &fault.Error{
			Kind: fault.Conflict, Op: op, RetryAfter: wait,
			Message: "The post is being published right now; try again in a moment.",
		}
	}
	if republish {
		return nil
	}
	if state == StatePublished || published {
		return fault.New(fault.Conflict, op,
			"The post is already published, at least in part; send republish: true to publish it again.")
	}
	if outcomeUnknown && to != StateDraft {
		return fault.New(fault.Conflict, op,
			"The post may already be published; check the platform, then send republish: true to publish it again.")
	}
	return nil
}
