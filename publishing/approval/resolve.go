package approval

import (
	"context"
	"errors"
	"time"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/publishing"
	approvalstore "crier/publishing/approval/store"
	"crier/publishing/db"
	"crier/publishing/pictures"
	"crier/tenancy"
)

// Resolve answers a request on behalf of a member, and returns the request. An approval with
// AutoSchedule schedules the post in the same transaction.
//
// Resolve returns NotFound if the request does not exist, and Invalid if cmd is invalid. It returns
// Forbidden for the person who made the request, for API keys and for agents. It returns Conflict
// if the request has already been answered, and Gone if it can no longer be answered.
func (s *Approvals) Resolve(
	ctx context.Context, p tenancy.Principal, approval string, cmd publishing.ResolveApproval,
) (publishing.Approval, error) {
	const op = "publishing.ResolveApproval"
	stored, err := s.find(ctx, op, p.Org, approval)
	if err != nil {
		return publishing.Approval{}, err
	}
	if err := stored.MayResolve(p); err != nil {
		return publishing.Approval{}, err
	}
	cmd, err = cmd.Cleaned()
	if err != nil {
		return publishing.Approval{}, err
	}
	cmd.Name = &p.Name
	a, _, err := s.resolve(ctx, p, stored.Approval, cmd)
	return a, err
}

// ResolveByToken is like Resolve, but for a guest with a review link.
func (s *Approvals) ResolveByToken(
	ctx context.Context, token string, cmd publishing.ResolveApproval,
) (publishing.Review, error) {
	const op = "publishing.ResolveByToken"
	stored, guest, err := s.reviewed(ctx, op, token)
	if err != nil {
		return publishing.Review{}, err
	}
	cmd, err = cmd.Cleaned()
	if err != nil {
		return publishing.Review{}, err
	}
	a, sharer, err := s.resolve(ctx, guest, stored.Approval, cmd)
	return publishing.Review{Approval: a, Org: guest.Org, Sharer: sharer}, err
}

// resolve stores a reviewer's answer. If several answers arrive at the same time, one is stored and
// the other callers get Conflict. sharer is the email address of the member who passed the link on
// to a guest, or "" if no member did.
func (s *Approvals) resolve(
	ctx context.Context, p tenancy.Principal, a publishing.Approval, cmd publishing.ResolveApproval,
) (answer publishing.Approval, sharer string, err error) {
	const op = "publishing.resolve"
	if err := a.Open(s.requests.deps.Clock.Now()); err != nil {
		return a, "", err
	}
	var draft publishing.PostDetail
	var problem error
	if cmd.Action == publishing.ActionApprove && a.AutoSchedule {
		draft, problem = s.deps.Drafts.Recheck(ctx, p, a.Post.String())
	}
	if problem != nil && !fault.Is(problem, fault.Invalid) {
		return a, "", goneFault(problem)
	}
	var due *time.Time
	var pictures []pictures.Key
	err = s.db.InOrgAs(ctx, p, func(tx *db.Tx) (err error) {
		answer = a
		if err := confirmLink(ctx, tx, p, a.ID); err != nil {
			return err
		}
		now := s.requests.deps.Clock.Now()
		answer.Status, answer.ResolvedAt = cmd.Action.Status(), &now
		answer.ReviewerNote, answer.ReviewerName = cmd.Note, cmd.Name
		if p.Via == tenancy.ViaSession {
			answer.ResolvedBy = p.Person
		}
		if p.Via == tenancy.ViaGuest && !p.Person.IsZero() {
			if sharer, err = approvalstore.MemberEmail(ctx, tx, p.Person); err != nil {
				return err
			}
		}
		if err := s.auditAnswer(ctx, tx, p, answer, sharer); err != nil {
			return err
		}
		by := reviewer(p, answer)
		due, pictures, err = s.deps.Drafts.Answer(
			ctx, tx, publishing.DraftAnswer{Approval: answer, By: by, Draft: draft, Problem: problem},
			func(problem error) error { return s.storeAnswer(ctx, tx, answer, by, problem) },
		)
		return err
	})
	if err != nil {
		return a, "", db.PostFault(op, goneFault(err))
	}
	s.deps.Pictures.Add(p.Org, pictures)
	if due != nil {
		s.deps.Waker.Wake(ctx, p.Org, *due)
	}
	return answer, sharer, nil
}

// auditAnswer adds an audit entry about an answer. A guest appears under the name they entered.
func (s *Approvals) auditAnswer(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, a publishing.Approval, sharer string,
) error {
	action, subject := tenancy.ActionRejected, "post "+a.Post.String()
	if a.Status == publishing.ApprovalApproved {
		action = tenancy.ActionApproved
	}
	if p.Via == tenancy.ViaGuest {
		p = tenancy.Principal{Org: p.Org, Via: tenancy.ViaGuest, Name: "guest"}
		if a.ReviewerName != nil {
			p.Name += " " + *a.ReviewerName
		}
	}
	if sharer != "" {
		subject += ", with the link of " + sharer
	}
	return s.db.Audit(ctx, tx, p, action, subject)
}

// storeAnswer stores an answer with its events. If problem is not nil, the timeline also says why
// the post was not scheduled. storeAnswer returns Conflict if another answer was stored first.
func (s *Approvals) storeAnswer(
	ctx context.Context, tx *db.Tx, a publishing.Approval, by string, problem error,
) error {
	event := publishing.EventApproved
	if a.Status == publishing.ApprovalRejected {
		event = publishing.EventRejected
	}
	reason := ""
	if problem != nil {
		reason = "The post was not scheduled: " + sentence(problem)
	}
	ended, err := s.requests.end(ctx, tx, a, publishing.ApprovalPending, event, by, reason)
	if err != nil {
		return err
	}
	if !ended {
		return fault.New(fault.Conflict, "publishing.answer", "This request has just been answered.")
	}
	return nil
}

// sentence returns the message of a fault, or "" for any other error.
func sentence(err error) string {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Message
	}
	return ""
}

// reviewer returns a description of the person who answered, for a post's timeline.
func reviewer(p tenancy.Principal, a publishing.Approval) string {
	if p.Via == tenancy.ViaSession {
		return tenancy.ActorOf(p)
	}
	return tenancy.GuestActor(a.ReviewerName, p.Person)
}

// goneFault converts NotFound to Gone, because NotFound means that the post was deleted. It returns
// other errors unchanged.
func goneFault(err error) error {
	if fault.Is(err, fault.NotFound) || pg.IsNoRows(err) {
		return fault.New(fault.Gone, "publishing.resolve", "The post was deleted.")
	}
	return err
}
