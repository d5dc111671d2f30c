package post

import (
	"context"
	"errors"
	"time"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/pictures"
	poststore "crier/publishing/post/store"
	"crier/tenancy"
)

// Resolve answers a request for a member, and returns it. An approval with AutoSchedule schedules the post in the same
// transaction. It returns NotFound, Invalid, Forbidden for who has asked and for keys, Conflict for a request that is
// answered already, and Gone for one that cannot be answered any more.
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

// guestName is how a guest without a name is called in timelines.
const guestName = "a guest"

// ResolveByToken is Resolve for a guest, who has the review link.
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

func reviewFault(op string, err error) error {
	if pg.IsNoRows(err) {
		return invalidLink(op)
	}
	return pg.Fault(op, err)
}

func invalidLink(op string) error { return fault.New(fault.NotFound, op, "This link is not valid.") }

// resolve stores the answer of a reviewer. Of several answers at the same time one is stored, and the others are
// Conflict. sharer is the address of the member who passed the link of a guest on, "" for nobody.
func (s *Approvals) resolve(
	ctx context.Context, p tenancy.Principal, a publishing.Approval, cmd publishing.ResolveApproval,
) (answer publishing.Approval, sharer string, err error) {
	const op = "publishing.resolve"
	if err := a.Open(s.deps.Clock.Now()); err != nil {
		return a, "", err
	}
	var entry checked
	var problem error
	schedule := cmd.Action == publishing.ActionApprove && a.AutoSchedule
	if schedule {
		entry, problem = s.recheck(ctx, p, a.Post.String())
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
		now := s.deps.Clock.Now()
		answer.Status, answer.ResolvedAt = cmd.Action.Status(), &now
		answer.ReviewerNote, answer.ReviewerName = cmd.Note, cmd.Name
		if p.Via == tenancy.ViaSession {
			answer.ResolvedBy = p.Person
		}
		if p.Via == tenancy.ViaGuest && !p.Person.IsZero() {
			if sharer, err = poststore.MemberEmail(ctx, tx, p.Person); err != nil {
				return err
			}
		}
		if err := s.auditAnswer(ctx, tx, p, answer, sharer); err != nil {
			return err
		}
		due, pictures, err = s.answer(ctx, tx, answer, p, entry, schedule, problem)
		return err
	})
	if err != nil {
		return a, "", publicFault(op, goneFault(err))
	}
	s.deps.Pictures.Add(p.Org, pictures)
	if due != nil {
		s.deps.Waker.Wake(ctx, p.Org, *due)
	}
	return answer, sharer, nil
}

// auditAnswer appends an entry about an answer to the audit log. A guest is named by what the guest has entered.
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

// goneFault returns Gone for what belongs to a post that was deleted, and other errors as they are.
func goneFault(err error) error {
	if fault.Is(err, fault.NotFound) || pg.IsNoRows(err) {
		return fault.New(fault.Gone, "publishing.resolve", "The post was deleted.")
	}
	return err
}

// answer stores an answer with its events, and takes the post into the queue if that is wanted. A post that cannot be
// scheduled stays an approved draft, and its timeline has the reason. It returns Conflict when another answer was first.
func (s *Approvals) answer(
	ctx context.Context, tx *db.Tx, a publishing.Approval, p tenancy.Principal, entry checked,
	schedule bool, problem error,
) (due *time.Time, pictures []pictures.Key, err error) {
	quota := poststore.PostQuota{}
	if schedule {
		quota, err = poststore.ReadPostQuota(ctx, tx, s.deps.Quota)
		if err != nil {
			return nil, nil, err
		}
	}
	group, err := poststore.GroupOf(ctx, tx, a.Post)
	if err != nil {
		return nil, nil, err
	}
	connected, err := poststore.HoldChannels(ctx, tx, nil, group)
	if err != nil {
		return nil, nil, err
	}
	posts, err := poststore.LockGroup(ctx, tx, group)
	if err != nil {
		return nil, nil, err
	}
	if len(posts) == 0 {
		return nil, nil, publishing.NoPost("publishing.answer")
	}
	event := publishing.EventApproved
	if a.Status == publishing.ApprovalRejected {
		event = publishing.EventRejected
	}
	if schedule && problem == nil {
		problem, err = schedulable(ctx, tx, posts, group, connected)
		if err != nil {
			return nil, nil, err
		}
	}
	if schedule && problem == nil {
		problem = quota.Room(ctx, "publishing.answer", s.goesOut(rootOf(posts).PublishDate))
		if problem != nil && !fault.Is(problem, fault.Quota) {
			return nil, nil, problem
		}
	}
	if schedule && problem == nil {
		pictures, problem = s.wantPictures(ctx, tx, entry)
		if problem != nil && !fault.Is(problem, fault.Invalid) {
			return nil, nil, problem
		}
	}
	reason := ""
	if problem != nil {
		reason = "The post was not scheduled: " + sentence(problem)
	}
	ended, err := s.endApproval(ctx, tx, a, publishing.ApprovalPending, event, reviewer(p, a), reason)
	if err != nil {
		return nil, nil, err
	}
	if !ended {
		return nil, nil, fault.New(fault.Conflict, "publishing.answer", "This request was answered in this moment.")
	}
	if a.Status == publishing.ApprovalApproved {
		if err := approve(ctx, tx, group, a.Post); err != nil {
			return nil, nil, err
		}
	}
	if !schedule || problem != nil {
		return nil, nil, nil
	}
	due, err = poststore.Move(ctx, tx, posts, publishing.StateQueue, false, reviewer(p, a))
	return due, pictures, err
}

// approve stores what a reviewer has approved: the content of a locked group, and the content of
// its series if that is the same.
func approve(
	ctx context.Context, tx *db.Tx, group publishing.GroupID, root publishing.PostID,
) error {
	if err := poststore.ApproveContent(ctx, tx, group); err != nil {
		return err
	}
	return poststore.MarkTemplate(ctx, tx, root, poststore.TemplateApproved)
}

// sentence returns the message of a fault for people.
func sentence(err error) string {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Message
	}
	return ""
}

// reviewer returns who answers, as the timeline of a post shows it.
func reviewer(p tenancy.Principal, a publishing.Approval) string {
	switch {
	case p.Via == tenancy.ViaSession:
		return publishing.ActorOf(p)
	case a.ReviewerName != nil:
		return "guest " + *a.ReviewerName + sharedBy(p)
	}
	return guestName + sharedBy(p)
}

// sharedBy returns who passed a guest's link on, as the timeline of a post shows it, "" for a mailed link.
func sharedBy(guest tenancy.Principal) string {
	if guest.Person.IsZero() {
		return ""
	}
	return " with the link of person " + guest.Person.String()
}

// schedulable returns why a locked draft cannot be taken into the queue, nil if it can.
func schedulable(
	ctx context.Context, tx *db.Tx, posts []poststore.PostStatus, group publishing.GroupID,
	connected int,
) (problem, err error) {
	const op = "publishing.schedulable"
	if connected == 0 {
		return publishing.Disconnected(op), nil
	}
	if err := movable(posts, publishing.StateQueue, false); err != nil {
		return err, nil
	}
	complete, err := poststore.HoldMedia(ctx, tx, group)
	if err == nil && !complete {
		problem = fault.New(fault.Invalid, op, "A file of this post was deleted.")
	}
	return problem, err
}

// Review returns what a guest sees of a request. It returns NotFound for a token that is none, and Gone for a request
// that has expired or does not count any more.
func (s *Approvals) Review(ctx context.Context, token string) (publishing.Review, error) {
	const op = "publishing.Review"
	stored, guest, err := s.reviewed(ctx, op, token)
	if err != nil {
		return publishing.Review{}, err
	}
	now, org := s.deps.Clock.Now(), guest.Org
	if err := stored.Readable(now); err != nil {
		return publishing.Review{}, err
	}
	roots, err := poststore.Root(ctx, s.db, org, stored.Post)
	if err != nil {
		return publishing.Review{}, pg.Fault(op, err)
	}
	if len(roots) == 0 {
		return publishing.Review{}, goneFault(publishing.NoPost(op))
	}
	threads, err := s.threads(ctx, org, roots)
	if err != nil {
		return publishing.Review{}, pg.Fault(op, err)
	}
	name, _, err := poststore.Reviewable(ctx, s.db, org)
	if err != nil {
		return publishing.Review{}, pg.Fault(op, err)
	}
	// An edit between the two reads has ended the request, and its content is not what was asked about.
	again, _, err := s.reviewed(ctx, op, token)
	if err != nil {
		return publishing.Review{}, err
	}
	if err := again.Readable(now); err != nil {
		return publishing.Review{}, err
	}
	return publishing.Review{Approval: again.At(now), Organization: name, Thread: threads[0], Org: org}, nil
}
