package publishing

import "crier/platform/fault"

// State is where a post stands. A CHECK constraint of the table carries the same list.
type State string

// The states. WAITING, PUBLISHING and UNKNOWN never reach the wire: they are QUEUE there.
const (
	StateDraft      State = "DRAFT"
	StateQueue      State = "QUEUE"
	StateWaiting    State = "WAITING"    // a delayed run of parts whose predecessor is not out yet
	StatePublishing State = "PUBLISHING" // claimed by a worker
	StateUnknown    State = "UNKNOWN"    // sent, and it is not known whether the platform acted
	StatePublished  State = "PUBLISHED"
	StateError      State = "ERROR"
)

// States lists every state, in the order of a post's life.
func States() []State {
	return []State{StateDraft, StateWaiting, StateQueue, StatePublishing, StateUnknown, StatePublished, StateError}
}

// Valid tells whether the state exists.
func (s State) Valid() bool {
	for _, v := range States() {
		if s == v {
			return true
		}
	}
	return false
}

// Wire is the state as clients see it.
func (s State) Wire() string {
	switch s {
	case StateWaiting, StatePublishing, StateUnknown:
		return string(StateQueue)
	default:
		return string(s)
	}
}

// Status is the older word for the state: draft, scheduled, published or failed.
func (s State) Status() string {
	switch s {
	case StateDraft:
		return "draft"
	case StatePublished:
		return "published"
	case StateError:
		return "failed"
	default:
		return "scheduled"
	}
}

// Claimed tells whether a worker holds the post, so that edits must wait.
func (s State) Claimed() bool { return s == StatePublishing || s == StateUnknown }

// The error codes that clients see beside ERROR.
const (
	CodeMissed          = "missed"
	CodeOutcomeUnknown  = "outcome_unknown"
	CodeRejected        = "rejected"
	CodeRetriesUsedUp   = "retries_used_up"
	CodeChannelDisabled = "channel_disabled"
	CodePredecessor     = "predecessor_failed"
	CodeTooLong         = "took_too_long"
)

// MaybeSentAdvice follows the reason why a post was given up that may have been published.
const MaybeSentAdvice = " A call for it may have reached the platform and was never answered: look there before publishing it again."

// Move returns why a post cannot be taken to DRAFT or QUEUE by hand, as a Conflict: claimed posts never move, and
// posts that are published, or may be, move only with republish. Only un-scheduling a post that may be published is
// allowed: it keeps that it may be. published means that a part of the post has a release.
func Move(state, to State, outcomeUnknown, published, republish bool) error {
	const op = "publishing.Move"
	if state.Claimed() {
		return fault.New(fault.Conflict, op, "The post is being published right now; try again in a moment.")
	}
	if republish {
		return nil
	}
	if state == StatePublished || published {
		return fault.New(fault.Conflict, op, "The post is published already, at least in part; send republish: true to publish it again.")
	}
	if outcomeUnknown && to != StateDraft {
		return fault.New(fault.Conflict, op, "The post may already be published; look on the platform, then send republish: true to publish it again.")
	}
	return nil
}
