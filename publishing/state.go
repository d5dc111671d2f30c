package publishing

import "crier/platform/fault"

// State is the state of a post. A CHECK constraint of the table carries the same list.
type State string

// The states. Clients see WAITING, PUBLISHING and UNKNOWN as QUEUE.
const (
	StateDraft State = "DRAFT"
	StateQueue State = "QUEUE"
	// StateWaiting is that of a follower whose predecessor is not published yet.
	StateWaiting State = "WAITING"
	// StatePublishing is that of a post that a worker has claimed.
	StatePublishing State = "PUBLISHING"
	// StateUnknown is that of a post that was sent without an answer: the platform may have published it.
	StateUnknown   State = "UNKNOWN"
	StatePublished State = "PUBLISHED"
	StateError     State = "ERROR"
)

// States lists every state, in the order of a post's life.
func States() []State {
	return []State{StateDraft, StateWaiting, StateQueue, StatePublishing, StateUnknown, StatePublished, StateError}
}

// Valid reports whether s is one of States, those included that clients see as QUEUE.
func (s State) Valid() bool {
	for _, v := range States() {
		if s == v {
			return true
		}
	}
	return false
}

// Claimed reports whether the post is being sent or its outcome is unknown, so that it cannot be edited.
func (s State) Claimed() bool { return s == StatePublishing || s == StateUnknown }

// The error codes of posts in StateError, as clients see them.
const (
	CodeMissed          = "missed"
	CodeOutcomeUnknown  = "outcome_unknown"
	CodeRejected        = "rejected"
	CodeRetriesUsedUp   = "retries_used_up"
	CodeChannelDisabled = "channel_disabled"
	CodePredecessor     = "predecessor_failed"
	CodeTooLong         = "took_too_long"
	// CodeQuota is that of an occurrence of a repeated post for which the plan had no room when it was written.
	CodeQuota = "quota"
)

// MaybeSentAdvice is appended to the error of a post that was given up and may have been published.
const MaybeSentAdvice = " A call for it may have reached the platform and was never answered: " +
	"look there before publishing it again."

// Move returns nil when a person may move a post to DRAFT or QUEUE, and else a Conflict with the reason. A claimed post
// cannot move. A post that is published, or may be, moves only with republish, except that one that may be published
// can be moved to DRAFT; it stays marked as such. published means that a part of the post has a release.
func Move(state, to State, outcomeUnknown, published, republish bool) error {
	const op = "publishing.Move"
	if state.Claimed() {
		return fault.New(fault.Conflict, op, "The post is being published right now; try again in a moment.")
	}
	if republish {
		return nil
	}
	if state == StatePublished || published {
		return fault.New(fault.Conflict, op,
			"The post is published already, at least in part; send republish: true to publish it again.")
	}
	if outcomeUnknown && to != StateDraft {
		return fault.New(fault.Conflict, op,
			"The post may already be published; look on the platform, then send republish: true to publish it again.")
	}
	return nil
}
