package approval

import (
	"time"

	"crier/publishing"
)

// approvalBody is the "approval" field of a webhook body. It has the same fields as an approval in
// the API, except for the link.
type approvalBody struct {
	ID           string                    `json:"id"`
	PostID       string                    `json:"postId"`
	Status       publishing.ApprovalStatus `json:"status"`
	Note         *string                   `json:"note"`
	ReviewerNote *string                   `json:"reviewerNote"`
	ReviewerName *string                   `json:"reviewerName"`
	Guest        bool                      `json:"guest,omitempty"`
	RequestedBy  *requesterBody            `json:"requestedBy"`
	RequestedAt  string                    `json:"requestedAt"`
	ResolvedAt   *string                   `json:"resolvedAt"`
	ExpiresAt    string                    `json:"expiresAt"`
	AutoSchedule bool                      `json:"autoSchedule"`
	ReviewURL    *string                   `json:"reviewUrl"`
}

type requesterBody struct {
	ID       string  `json:"id"`
	Email    *string `json:"email"`
	Operator bool    `json:"operator,omitempty"`
	// Agent is the agent that made the request on the person's behalf, or nil if no agent did.
	Agent *agentBody `json:"agent,omitempty"`
}

type agentBody struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func approvalData(a publishing.Approval) approvalBody {
	out := approvalBody{
		ID: a.ID.String(), PostID: a.Post.String(), Status: a.Shown(), Note: a.Note, ReviewerNote: a.ReviewerNote,
		ReviewerName: a.ReviewerName, Guest: a.ByGuest(), RequestedAt: wireTime(a.RequestedAt),
		ExpiresAt:    wireTime(a.ExpiresAt),
		AutoSchedule: a.AutoSchedule,
	}
	if !a.Person.IsZero() {
		out.RequestedBy = &requesterBody{ID: a.Person.String(), Email: a.PersonEmail, Operator: !a.Impersonator.IsZero()}
		if !a.Agent.IsZero() {
			out.RequestedBy.Agent = &agentBody{ID: a.Agent.String(), Name: a.AgentName}
		}
	}
	if a.ResolvedAt != nil {
		at := wireTime(*a.ResolvedAt)
		out.ResolvedAt = &at
	}
	return out
}

// voidData is like approvalData, but for an approval that has ended. The API shows an ended
// approval as NONE, but the webhook reports it as VOID.
func voidData(a publishing.Approval) approvalBody {
	out := approvalData(a)
	out.Status = publishing.ApprovalVoid
	return out
}

func wireTime(t time.Time) string { return t.UTC().Format(publishing.WireTime) }
