package publishing

import (
	"crier/platform/fault"
	"crier/tenancy"
)

// MustAsk reports whether the principal is an agent that may create, change and delete only drafts.
// Only a person can approve or schedule its drafts.
func MustAsk(p tenancy.Principal) bool {
	return p.Via == tenancy.ViaAgent && p.Agent.Limits != nil && p.Agent.Limits.MustAsk
}

// MayQueue returns Forbidden if the principal may not put posts in the queue.
func MayQueue(op string, p tenancy.Principal) error {
	if !MustAsk(p) {
		return nil
	}
	return fault.New(fault.Forbidden, op, "This agent may not publish or schedule posts. Create the post as a draft and "+
		askForApproval)
}

// MayChange returns Forbidden if the principal may not change or delete a post in one of the given
// states.
func MayChange(op string, p tenancy.Principal, states ...State) error {
	if !MustAsk(p) {
		return nil
	}
	for _, s := range states {
		if s != StateDraft && s != StateWaiting { // a follower of a draft is waiting, too
			return onlyDrafts(op)
		}
	}
	return nil
}

// MayContinue returns Forbidden if the principal may not let a repeated post be scheduled without a
// person's involvement.
func MayContinue(op string, p tenancy.Principal) error {
	if !MustAsk(p) {
		return nil
	}
	return fault.New(fault.Forbidden, op, "Without this draft, the repeated post would be scheduled again, which this agent "+
		"may not do. Leave it to a person, or delete all of its posts with DELETE /posts/group/{group}.")
}

// MayRepeat returns Forbidden if the principal may not queue repeated posts: an agent whose posts
// per day are limited may not, because later occurrences are not counted.
func MayRepeat(op string, p tenancy.Principal) error {
	if p.Via != tenancy.ViaAgent || p.Agent.Limits == nil || p.Agent.Limits.PostsPerDay == 0 {
		return nil
	}
	return fault.New(fault.Forbidden, op, "This agent may queue a limited number of posts per day, so it may not queue "+
		"repeated posts, which add posts on later days. Omit inter, or leave this post to a person.")
}

// MayChangeShared returns Forbidden if the principal may not change or delete a file or a tag. An
// agent with access to only some channels, or one that must ask, may not, because posts on every
// channel share files and tags. what is "files" or "tags".
func MayChangeShared(op string, p tenancy.Principal, what string) error {
	if p.Via != tenancy.ViaAgent || p.Agent.Limits == nil {
		return nil
	}
	l := p.Agent.Limits
	if !l.MustAsk && len(l.Channels) == 0 && len(l.Customers) == 0 {
		return nil
	}
	return fault.New(fault.Forbidden, op, "This agent may not change or delete "+what+", because posts that it may not "+
		"change might use them. Leave it to a person.")
}

func onlyDrafts(op string) error {
	return fault.New(fault.Forbidden, op, "This agent may change and delete only drafts. Leave this post to a person, or "+
		"create another one as a draft and "+askForApproval)
}

// askForApproval tells an agent how to request approval for a draft.
const askForApproval = "request approval with POST /posts/{id}/request-approval (tool service_request_approval)."

// NoAgent returns Forbidden if the principal is an agent. The argument what completes the sentence
// "An agent may not ...". Example: connect or disconnect channels
func NoAgent(op string, p tenancy.Principal, what string) error {
	if p.Via != tenancy.ViaAgent {
		return nil
	}
	return fault.New(fault.Forbidden, op, "An agent may not "+what+"; a person can do this.")
}
