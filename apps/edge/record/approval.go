package record

import "crier/publishing"

// ApprovalEffect is the effect of a change on a post's approval.
type ApprovalEffect struct {
	State    string `json:"state,omitempty" enum:"DRAFT" doc:"DRAFT if the post left the queue because its approved content changed. The post stays a draft until it is approved again. Absent otherwise."`
	Approval string `json:"approval,omitempty" enum:"VOID" doc:"VOID if the post is no longer approved because its content changed. Absent otherwise."`
}

// NewApprovalEffect returns the record of an effect.
func NewApprovalEffect(e publishing.ApprovalEffect) (out ApprovalEffect) {
	if e.Draft {
		out.State = string(publishing.StateDraft)
	}
	if e.Void {
		out.Approval = string(publishing.ApprovalVoid)
	}
	return out
}
