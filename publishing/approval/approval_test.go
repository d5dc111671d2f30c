package approval_test

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/jobs"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/approval"
	"crier/publishing/connector"
	"crier/publishing/post"
	"crier/tenancy"
	"crier/tests/dbtest"
	"crier/tests/publishtest"
	"crier/tests/tenant"
)

// strict refuses drafts while refuse is set.
type strict struct {
	publishtest.Lenient
	refuse atomic.Bool
}

func (s *strict) Validate(connector.Draft) []connector.Problem {
	if s.refuse.Load() {
		return []connector.Problem{{Message: "is not allowed today"}}
	}
	return nil
}

// settable is a clock that a test can move ahead.
type settable struct{ ahead atomic.Int64 }

func (c *settable) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// mailbox records the mails to reviewers.
type mailbox struct {
	mu   sync.Mutex
	sent []approval.ReviewMail
}

func (m *mailbox) SendReview(_ context.Context, mail approval.ReviewMail) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent = append(m.sent, mail)
	return nil
}

// approvalRig is an organization with a channel, and the use cases of posts and approvals on it.
type approvalRig struct {
	*publishtest.Rig
	who       tenancy.Principal
	posts     *post.Posts
	approvals *approval.Approvals
	clock     *settable
	rules     *strict
	mails     *mailbox
	channel   string
}

func newApprovalRig(t *testing.T) *approvalRig {
	t.Helper()
	r := publishtest.NewRig(t)
	out := &approvalRig{Rig: r, who: r.Organization(), clock: &settable{}, rules: &strict{}, mails: &mailbox{}}
	r.Register(out.rules)
	r.Deps.Clock = out.clock
	queue, err := jobs.NewQueue()
	r.OK(err)
	r.Deps.ReviewMails = queue
	out.posts = r.Deps.Posts(publishtest.Limits)
	out.approvals = r.Deps.Approvals(publishtest.Limits, out.posts, out.mails)
	out.channel = r.Connect(out.who.Org).String()
	return out
}

// create creates a post for the given time.
func (r *approvalRig) create(kind publishing.CreateType, at time.Time) publishing.PostID {
	r.Helper()
	made, err := publishtest.CreateAt(r.Context(), r.posts, r.who, r.channel, kind, at, publishing.Repeat{})
	r.OK(err)
	return made
}

// draft creates a draft for tomorrow.
func (r *approvalRig) draft() publishing.PostID {
	r.Helper()
	return r.create(publishing.CreateDraft, time.Now().Add(48*time.Hour))
}

// colleague returns another member of the organization.
func (r *approvalRig) colleague(role tenancy.Role) tenancy.Principal {
	r.Helper()
	return tenant.Join(r.T, r.DB, r.who.Org, role)
}

func (r *approvalRig) request(post publishing.PostID, auto bool) publishing.Approval {
	r.Helper()
	a, err := r.approvals.Request(r.Context(), r.who, post.String(), publishing.RequestApproval{AutoSchedule: auto})
	r.OK(err)
	return a
}

func (r *approvalRig) resolve(a publishing.Approval, action publishing.ApprovalAction) (publishing.Approval, error) {
	return r.approvals.Resolve(r.Context(), r.colleague(tenancy.RoleUser), a.ID.String(), publishing.ResolveApproval{Action: action})
}

// token returns the token of the review link that a colleague sees for a post.
func (r *approvalRig) token(post publishing.PostID) string {
	r.Helper()
	a, err := r.approvals.Status(r.Context(), r.colleague(tenancy.RoleUser), post.String())
	r.OK(err)
	if a.ReviewURL == "" {
		r.Fatal("a colleague does not see the review link")
	}
	return path.Base(a.ReviewURL)
}

// status is the state of a post and of its newest request.
type status struct {
	state    publishing.State
	approval publishing.ApprovalStatus
}

func (r *approvalRig) wantStatus(post publishing.PostID, want status) publishing.PostDetail {
	r.Helper()
	d, err := r.posts.Get(r.Context(), r.who, post.String())
	r.OK(err)
	if got := (status{d.Root.State, d.Approval}); got != want {
		r.Fatalf("the post is %+v, want %+v", got, want)
	}
	return d
}

func (r *approvalRig) wantKind(what string, err error, kind fault.Kind) {
	r.Helper()
	if !fault.Is(err, kind) {
		r.Fatalf("%s returned %v, want %s", what, err, kind)
	}
}

func (r *approvalRig) count(sql string, args ...any) (n int) {
	r.Helper()
	r.OK(r.DB.InOrg(r.Context(), r.who.Org.UUID(), func(tx pgx.Tx) error {
		return tx.QueryRow(r.Context(), sql, args...).Scan(&n)
	}))
	return n
}

func kinds(d publishing.PostDetail) (out []publishing.EventKind) {
	for _, e := range d.Events {
		out = append(out, e.Kind)
	}
	return out
}

func TestApproval_OnlyDraftsAndOneAtATime(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	post := r.draft()
	r.request(post, false)
	_, err := r.approvals.Request(t.Context(), r.who, post.String(), publishing.RequestApproval{})
	r.wantKind("a second request", err, fault.Conflict)
	queued := r.create(publishing.CreateSchedule, time.Now().Add(48*time.Hour))
	_, err = r.approvals.Request(t.Context(), r.who, queued.String(), publishing.RequestApproval{})
	r.wantKind("a request for a scheduled post", err, fault.Conflict)
	_, err = r.approvals.Request(t.Context(), r.who, id.New[publishing.PostTag]().String(), publishing.RequestApproval{})
	r.wantKind("a request for an unknown post", err, fault.NotFound)
	other := r.draft()
	var once sync.WaitGroup
	var made atomic.Int32
	for range 8 {
		once.Go(func() {
			if _, err := r.approvals.Request(t.Context(), r.who, other.String(), publishing.RequestApproval{}); err == nil {
				made.Add(1)
			}
		})
	}
	once.Wait()
	if made.Load() != 1 {
		t.Errorf("%d of 8 requests at once succeeded, want one", made.Load())
	}
}

func TestApproval_Answers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		auto   bool
		action publishing.ApprovalAction
		want   status
		events []publishing.EventKind
	}{
		"approved": {false, publishing.ActionApprove, status{publishing.StateDraft, publishing.ApprovalApproved},
			[]publishing.EventKind{publishing.EventWritten, publishing.EventApprovalRequested, publishing.EventApproved}},
		"approved and scheduled": {true, publishing.ActionApprove, status{publishing.StateQueue, publishing.ApprovalApproved},
			[]publishing.EventKind{publishing.EventWritten, publishing.EventApprovalRequested, publishing.EventApproved, publishing.EventScheduled}},
		"rejected": {true, publishing.ActionReject, status{publishing.StateDraft, publishing.ApprovalRejected},
			[]publishing.EventKind{publishing.EventWritten, publishing.EventApprovalRequested, publishing.EventRejected}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newApprovalRig(t)
			post := r.draft()
			a, err := r.resolve(r.request(post, c.auto), c.action)
			r.OK(err)
			d := r.wantStatus(post, c.want)
			if !slices.Equal(kinds(d), c.events) {
				t.Errorf("the timeline has %v, want %v", kinds(d), c.events)
			}
			if d.Root.Due == nil || !d.Root.Due.Equal(d.Root.PublishDate) {
				t.Errorf("the post is due at %v, want %v", d.Root.Due, d.Root.PublishDate)
			}
			_, err = r.resolve(a, c.action)
			r.wantKind("a second answer", err, fault.Conflict)
		})
	}
}

func TestApproval_PastDateIsDueAtOnce(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	post := r.create(publishing.CreateDraft, time.Now().Add(-time.Hour))
	_, err := r.resolve(r.request(post, true), publishing.ActionApprove)
	r.OK(err)
	d := r.wantStatus(post, status{publishing.StateQueue, publishing.ApprovalApproved})
	if !d.Root.Due.After(d.Root.PublishDate) {
		t.Errorf("the post is due at %v, want the time of the approval", d.Root.Due)
	}
}

func TestApproval_PostThatBreaksTheRulesStaysApprovedDraft(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	post := r.draft()
	a := r.request(post, true)
	r.rules.refuse.Store(true)
	_, err := r.resolve(a, publishing.ActionApprove)
	r.OK(err)
	d := r.wantStatus(post, status{publishing.StateDraft, publishing.ApprovalApproved})
	last := d.Events[len(d.Events)-1]
	if last.Kind != publishing.EventApproved || last.Reason == nil || len(*last.Reason) < 30 {
		t.Errorf("the last event is %+v, want the approval and why the post was not scheduled", last)
	}
}

func TestApproval_OneOfManyAnswersCounts(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	for range 5 {
		post := r.draft()
		a, token := r.request(post, true), r.token(post)
		var group sync.WaitGroup
		var won, lost atomic.Int32
		for i := range 8 {
			action := []publishing.ApprovalAction{publishing.ActionApprove, publishing.ActionReject}[i%2]
			group.Go(func() {
				var err error
				if i < 4 {
					_, err = r.resolve(a, action)
				} else {
					_, err = r.approvals.ResolveByToken(t.Context(), token, publishing.ResolveApproval{Action: action})
				}
				switch {
				case err == nil:
					won.Add(1)
				case fault.Is(err, fault.Conflict):
					lost.Add(1)
				default:
					t.Errorf("an answer returned %v, want nil or a conflict", err)
				}
			})
		}
		group.Wait()
		if won.Load() != 1 || lost.Load() != 7 {
			t.Fatalf("%d answers counted and %d were conflicts, want 1 and 7", won.Load(), lost.Load())
		}
		d, err := r.posts.Get(t.Context(), r.who, post.String())
		r.OK(err)
		if (d.Approval == publishing.ApprovalApproved) != (d.Root.State == publishing.StateQueue) {
			t.Fatalf("the post is %s and its request %s", d.Root.State, d.Approval)
		}
	}
}

func TestApproval_RequesterMayNotAnswer(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	post := r.draft()
	a := r.request(post, true)
	yes := publishing.ResolveApproval{Action: publishing.ActionApprove}
	_, err := r.approvals.Resolve(t.Context(), r.who, a.ID.String(), yes)
	r.wantKind("an answer of who asked", err, fault.Forbidden)
	key := tenancy.Principal{Org: r.who.Org, Role: tenancy.RoleSuperAdmin, Via: tenancy.ViaKey, Key: id.New[tenancy.KeyTag]()}
	_, err = r.approvals.Resolve(t.Context(), key, a.ID.String(), yes)
	r.wantKind("an answer of a key", err, fault.Forbidden)
	own, err := r.approvals.Status(t.Context(), r.who, post.String())
	r.OK(err)
	if own.ReviewURL != "" {
		t.Error("who asked sees the review link")
	}
	_, err = r.approvals.Request(t.Context(), r.who, r.draft().String(), publishing.RequestApproval{ReviewerEmail: &r.who.Name})
	r.wantKind("a request to oneself", err, fault.Invalid)
	r.wantStatus(post, status{publishing.StateDraft, publishing.ApprovalPending})
}

func TestReviewMail_NamesWhatItsReaderKnows(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	r.OK(r.DB.InOrg(t.Context(), r.who.Org.UUID(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "update organization set timezone = 'Europe/Berlin' where id = $1", r.who.Org)
		return err
	}))
	reviewer, note := "client@crier.test", "Is the price right?"
	for name, want := range map[string]string{"Ann Lee": "Ann Lee", "": r.who.Name} {
		r.OK(r.DB.InRole(t.Context(), pg.Gate, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "update person set name = $2 where id = $1", r.who.Person, name)
			return err
		}))
		post := r.draft()
		a, err := r.approvals.Request(t.Context(), r.who, post.String(), publishing.RequestApproval{ReviewerEmail: &reviewer, Note: &note})
		r.OK(err)
		r.OK(r.approvals.SendReviewMail(t.Context(), r.who.Org, a.ID))
		got := r.mails.sent[len(r.mails.sent)-1]
		d, err := r.posts.Get(t.Context(), r.who, post.String())
		r.OK(err)
		wanted := approval.ReviewMail{
			To: reviewer, Organization: got.Organization, By: want, Note: note, Words: d.Root.Parts[0].Content.Excerpt(),
			Channel: d.Channel.Name, Platform: r.rules.Describe().Name, Zone: "Europe/Berlin", Link: got.Link,
			PublishDate: d.Root.PublishDate, ExpiresAt: got.ExpiresAt,
		}
		if got != wanted || got.Words == "" || got.Channel == "" || got.Platform == "" {
			t.Errorf("got the mail %+v, want %+v", got, wanted)
		}
	}
}

// An operator who is impersonating a member cannot approve. The record and the timeline name the
// operator for everything that an operator may do.
func TestApproval_OperatorIsNamedAndMayNotAnswer(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	acting := r.who
	acting.Impersonator, acting.ImpersonatorName = id.New[tenancy.PersonTag](), "root@crier.test"
	post, reviewer := r.draft(), "client@crier.test"
	_, err := r.approvals.Request(t.Context(), acting, post.String(), publishing.RequestApproval{ReviewerEmail: &reviewer})
	r.OK(err)
	a, err := r.approvals.Status(t.Context(), r.who, post.String())
	r.OK(err)
	if a.Impersonator != acting.Impersonator || a.Person != r.who.Person {
		t.Errorf("the request is of %s behind %s, want %s behind %s", a.Impersonator, a.Person, acting.Impersonator, r.who.Person)
	}
	r.OK(r.approvals.SendReviewMail(t.Context(), r.who.Org, a.ID))
	if by := r.mails.sent[0].By; !strings.HasPrefix(by, "an operator for") {
		t.Errorf("the mail is by %q, want the operator", by)
	}
	other := r.colleague(tenancy.RoleAdmin)
	other.Impersonator = id.New[tenancy.PersonTag]()
	_, err = r.approvals.Resolve(t.Context(), other, a.ID.String(), publishing.ResolveApproval{Action: publishing.ActionApprove})
	r.wantKind("an answer of an operator", err, fault.Forbidden)
	_, err = r.approvals.Withdraw(t.Context(), acting, a.ID.String())
	r.OK(err)
	d := r.wantStatus(post, status{publishing.StateDraft, publishing.ApprovalNone})
	for _, e := range d.Events[1:] {
		if want := "operator for person " + r.who.Person.String(); e.By == nil || *e.By != want {
			t.Errorf("%s is by %v, want %s", e.Kind, e.By, want)
		}
	}
}

// TestForgetReviewer checks that the address is removed from the requests of all organizations and
// that the requests remain.
func TestForgetReviewer(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	gone, other := "gone@crier.test", "other@crier.test"
	for _, email := range []*string{&gone, &other} {
		_, err := r.approvals.Request(t.Context(), r.who, r.draft().String(), publishing.RequestApproval{ReviewerEmail: email})
		r.OK(err)
	}
	for range 2 {
		r.OK(r.approvals.ForgetReviewer(t.Context(), gone))
		if n := r.count("select count(*) from approval where reviewer_email = $1", gone); n != 0 {
			t.Errorf("%d requests have the address, want none", n)
		}
	}
	if n := r.count("select count(*) from approval where reviewer_email = $1", other); n != 1 || r.count("select count(*) from approval") != 2 {
		t.Errorf("%d requests have the other address, want 1 of 2", n)
	}
}

func TestApproval_EditsEndIt(t *testing.T) {
	t.Parallel()
	edit := func(r *approvalRig, post publishing.PostID) {
		_, err := r.posts.Create(r.Context(), r.who, publishing.CreatePosts{
			Type: publishing.CreateUpdate, Date: time.Now().Add(48 * time.Hour),
			Entries: []publishing.CreateEntry{{Channel: r.channel, Parts: []publishing.CreatePart{{ID: post.String(), Content: "changed"}}}},
		})
		r.OK(err)
	}
	settings := func(r *approvalRig, post publishing.PostID) {
		_, err := r.posts.ChangeSettings(r.Context(), r.who, post.String(), publishing.ChangeSettings{Settings: []byte(`{"a":1}`)})
		r.OK(err)
	}
	for name, change := range map[string]func(*approvalRig, publishing.PostID){"the content": edit, "the settings": settings} {
		for _, approved := range []bool{false, true} {
			t.Run(name+map[bool]string{false: " while pending", true: " after the approval"}[approved], func(t *testing.T) {
				t.Parallel()
				r := newApprovalRig(t)
				post := r.draft()
				a, token := r.request(post, false), r.token(post)
				if approved {
					_, err := r.resolve(a, publishing.ActionApprove)
					r.OK(err)
				}
				change(r, post)
				r.wantStatus(post, status{publishing.StateDraft, publishing.ApprovalNone})
				_, err := r.approvals.Review(t.Context(), token)
				r.wantKind("the link", err, fault.Gone)
				_, err = r.resolve(a, publishing.ActionApprove)
				r.wantKind("an answer", err, fault.Gone)
				r.request(post, false)
				r.wantStatus(post, status{publishing.StateDraft, publishing.ApprovalPending})
			})
		}
	}
}

// TestApproval_EditAndAnswerAtOnce checks that only content that was approved is scheduled.
func TestApproval_EditAndAnswerAtOnce(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	for range 10 {
		post := r.draft()
		a := r.request(post, true)
		var group sync.WaitGroup
		group.Go(func() {
			_, err := r.resolve(a, publishing.ActionApprove)
			if err != nil && !fault.Is(err, fault.Gone) && !fault.Is(err, fault.Conflict) {
				t.Errorf("the answer returned %v, want nil, Gone or a conflict", err)
			}
		})
		group.Go(func() {
			_, err := r.posts.Create(t.Context(), r.who, publishing.CreatePosts{
				Type: publishing.CreateDraft, Date: time.Now().Add(48 * time.Hour),
				Entries: []publishing.CreateEntry{{Channel: r.channel, Parts: []publishing.CreatePart{{ID: post.String(), Content: "changed"}}}},
			})
			r.OK(err)
		})
		group.Wait()
		r.wantStatus(post, status{publishing.StateDraft, publishing.ApprovalNone})
	}
}

func TestApproval_PendingPostIsScheduledOnlyByAdministrators(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	post := r.draft()
	token := func() string { r.request(post, false); return r.token(post) }()
	schedule := publishing.ChangeStatus{To: publishing.CreateSchedule}
	_, err := r.posts.ChangeStatus(t.Context(), r.colleague(tenancy.RoleUser), post.String(), schedule)
	r.wantKind("a member's schedule", err, fault.Conflict)
	_, err = r.posts.Create(t.Context(), r.colleague(tenancy.RoleUser), publishing.CreatePosts{
		Type: publishing.CreateNow, Date: time.Now(),
		Entries: []publishing.CreateEntry{{Channel: r.channel, Parts: []publishing.CreatePart{{ID: post.String(), Content: "changed"}}}},
	})
	r.wantKind("a member's edit that publishes", err, fault.Conflict)
	d := r.wantStatus(post, status{publishing.StateDraft, publishing.ApprovalPending})
	if d.Root.Parts[0].Content.Text != "a post" {
		t.Errorf("the content is %q after a refused edit", d.Root.Parts[0].Content.Text)
	}
	_, err = r.posts.ChangeStatus(t.Context(), r.who, post.String(), schedule)
	r.OK(err)
	r.wantStatus(post, status{publishing.StateQueue, publishing.ApprovalNone})
	_, err = r.approvals.Review(t.Context(), token)
	r.wantKind("the link", err, fault.Gone)
}

func TestApproval_Withdraw(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	post := r.draft()
	a, token := r.request(post, false), r.token(post)
	_, err := r.approvals.Withdraw(t.Context(), r.colleague(tenancy.RoleUser), a.ID.String())
	r.wantKind("a withdrawal by another member", err, fault.Forbidden)
	out, err := r.approvals.Withdraw(t.Context(), r.who, a.ID.String())
	r.OK(err)
	if out.Shown() != publishing.ApprovalNone {
		t.Errorf("it is %s, want NONE", out.Shown())
	}
	_, err = r.approvals.Withdraw(t.Context(), r.who, a.ID.String())
	r.wantKind("a second withdrawal", err, fault.NotFound)
	_, err = r.approvals.Review(t.Context(), token)
	r.wantKind("the link", err, fault.Gone)
	r.wantStatus(post, status{publishing.StateDraft, publishing.ApprovalNone})
}

func TestApproval_Links(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	post := r.draft()
	r.request(post, false)
	token := r.token(post)
	review, err := r.approvals.Review(t.Context(), token)
	r.OK(err)
	if review.Organization == "" || review.Thread.Root.ID != post || review.Thread.Root.Parts[0].Content.Text != "a post" {
		t.Errorf("a guest sees %+v, want the post of the organization", review)
	}
	for _, wrong := range []string{"", "x", token + "x", token[1:], "../" + token, "\x00"} {
		_, err := r.approvals.Review(t.Context(), wrong)
		r.wantKind("a wrong link", err, fault.NotFound)
		_, err = r.approvals.ResolveByToken(t.Context(), wrong, publishing.ResolveApproval{Action: publishing.ActionApprove})
		r.wantKind("an answer by a wrong link", err, fault.NotFound)
	}
	answer := publishing.ResolveApproval{Action: publishing.ActionReject, Name: new("Client"), Note: new("Too loud.")}
	_, err = r.approvals.ResolveByToken(t.Context(), token, answer)
	r.OK(err)
	review, err = r.approvals.Review(t.Context(), token)
	r.OK(err)
	if review.Status != publishing.ApprovalRejected || *review.ReviewerName != "Client" || *review.ReviewerNote != "Too loud." {
		t.Errorf("the answer is %+v", review.Approval)
	}
	r.clock.ahead.Store(int64(publishing.ApprovalLife))
	_, err = r.approvals.Review(t.Context(), token)
	r.wantKind("the link after a week", err, fault.Gone)
	r.clock.ahead.Store(0)
	deleted := r.draft()
	r.request(deleted, false)
	token = r.token(deleted)
	r.OK(r.posts.Delete(t.Context(), r.who, deleted.String()))
	if n := r.count(`select count(*) from approval where post_id = $1 and status = 'VOID'`, deleted); n != 1 {
		t.Errorf("%d requests of a deleted post have ended, want 1", n)
	}
	_, err = r.approvals.Review(t.Context(), token)
	r.wantKind("the link of a deleted post", err, fault.Gone)
	_, err = r.approvals.ResolveByToken(t.Context(), token, publishing.ResolveApproval{Action: publishing.ActionApprove})
	r.wantKind("an answer about a deleted post", err, fault.Gone)
}

func TestApproval_ExpiryAndReminder(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	post := r.draft()
	mail := publishing.RequestApproval{ReviewerEmail: new("client@example.com")}
	a, err := r.approvals.Request(t.Context(), r.who, post.String(), mail)
	r.OK(err)
	r.OK(r.approvals.SendReviewMail(t.Context(), r.who.Org, a.ID))
	link := path.Base(r.mails.sent[0].Link)
	_, err = r.approvals.Review(t.Context(), link)
	r.OK(err)
	sweep := func(ahead time.Duration, want int) {
		t.Helper()
		r.clock.ahead.Store(int64(ahead))
		n, err := r.approvals.SweepApprovals(t.Context())
		r.OK(err)
		if n != want {
			t.Fatalf("after %v a sweep changed %d requests, want %d", ahead, n, want)
		}
	}
	sweep(23*time.Hour, 0)
	sweep(25*time.Hour, 1)
	sweep(26*time.Hour, 0)
	tasks := r.count(`select count(*) from jobs.river_job where kind = $1 and args->>'id' = $2`, approval.ReviewMailTask, a.ID.String())
	if tasks != 2 {
		t.Errorf("there are %d tasks, want one for the request and one for the reminder", tasks)
	}
	r.OK(r.approvals.SendReviewMail(t.Context(), r.who.Org, a.ID))
	sweep(publishing.ApprovalLife+time.Second, 1)
	d := r.wantStatus(post, status{publishing.StateDraft, publishing.ApprovalExpired})
	if got := kinds(d); got[len(got)-1] != publishing.EventApprovalExpired {
		t.Errorf("the timeline has %v, want that the request expired", got)
	}
	r.OK(r.approvals.SendReviewMail(t.Context(), r.who.Org, a.ID))
	if len(r.mails.sent) != 2 || path.Base(r.mails.sent[1].Link) != link || r.mails.sent[0].To != "client@example.com" ||
		r.mails.sent[0].Reminder || !r.mails.sent[1].Reminder {
		t.Errorf("the mails are %+v, want two with the link, and none after the end", r.mails.sent)
	}
	r.request(post, false)
}

// TestApproval_MailedLinkEndsWithMemberships checks that a link that a removed person may have,
// whatever address it was mailed to, cannot answer a request.
func TestApproval_MailedLinkEndsWithMemberships(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	asks, reads := tenant.Join(t, r.DB, r.who.Org, tenancy.RoleAdmin), tenant.Join(t, r.DB, r.who.Org, tenancy.RoleUser)
	tagged := func(p tenancy.Principal) string {
		local, domain, _ := strings.Cut(p.Name, "@")
		return local + "+review@" + domain
	}
	ask := func(p tenancy.Principal, email string) (publishing.PostID, string) {
		t.Helper()
		post := r.draft()
		a, err := r.approvals.Request(t.Context(), p, post.String(), publishing.RequestApproval{ReviewerEmail: &email})
		r.OK(err)
		r.OK(r.approvals.SendReviewMail(t.Context(), r.who.Org, a.ID))
		return post, path.Base(r.mails.sent[len(r.mails.sent)-1].Link)
	}
	own, ownLink := ask(asks, "client@example.com")
	mailed, mailedLink := ask(r.who, tagged(reads))
	other, otherLink := ask(r.who, "client@example.com")
	_, err := r.approvals.Request(t.Context(), asks, r.draft().String(), publishing.RequestApproval{ReviewerEmail: new(tagged(asks))})
	r.wantKind("a request to a tag of one's own mailbox", err, fault.Invalid)
	mailedBy := func(p tenancy.Principal) (posts []string) {
		t.Helper()
		r.OK(r.DB.InOrg(t.Context(), r.who.Org.UUID(), func(tx pgx.Tx) error {
			reviews, err := r.approvals.MailedBy(t.Context(), tx, p.Person)
			posts = nil
			for _, a := range reviews {
				posts = append(posts, a.Post)
			}
			return err
		}))
		return posts
	}
	for p, want := range map[tenancy.Principal]publishing.PostID{asks: own, reads: mailed} {
		if got := mailedBy(p); !slices.Equal(got, []string{want.String()}) {
			t.Errorf("a removal names %v, want %v", got, want)
		}
		tenant.Leave(t, r.DB, p)
	}
	sent := len(r.mails.sent)
	for name, link := range map[string]string{"of a request by who left": ownLink, "mailed to who left": mailedLink} {
		_, err := r.approvals.Review(t.Context(), link)
		r.wantKind("the link "+name, err, fault.Gone)
		_, err = r.approvals.ResolveByToken(t.Context(), link, publishing.ResolveApproval{Action: publishing.ActionApprove})
		r.wantKind("an answer by the link "+name, err, fault.Gone)
	}
	for _, post := range []publishing.PostID{own, mailed} {
		r.wantStatus(post, status{publishing.StateDraft, publishing.ApprovalPending})
		a, err := r.approvals.Status(t.Context(), r.colleague(tenancy.RoleUser), post.String())
		r.OK(err)
		r.OK(r.approvals.SendReviewMail(t.Context(), r.who.Org, a.ID))
	}
	if len(r.mails.sent) != sent {
		t.Errorf("links that do not work were mailed: %+v", r.mails.sent[sent:])
	}
	_, err = r.approvals.ResolveByToken(t.Context(), r.token(own), publishing.ResolveApproval{Action: publishing.ActionApprove})
	r.OK(err)
	_, err = r.approvals.ResolveByToken(t.Context(), otherLink, publishing.ResolveApproval{Action: publishing.ActionReject})
	r.OK(err)
	if events := r.wantStatus(own, status{publishing.StateDraft, publishing.ApprovalApproved}).Events; !strings.Contains(*events[len(events)-1].By, "with the link of person ") {
		t.Errorf("the answer is by %q, want that it names the member who passed the link on", *events[len(events)-1].By)
	}
	r.wantStatus(other, status{publishing.StateDraft, publishing.ApprovalRejected})
	key := asks
	key.Via, key.Key = tenancy.ViaKey, id.New[tenancy.KeyTag]()
	_, err = r.approvals.Request(t.Context(), key, r.draft().String(), publishing.RequestApproval{ReviewerEmail: new("client@example.com")})
	r.wantKind("a request with a link by the key of a former member", err, fault.Invalid)
	_, err = r.approvals.Request(t.Context(), key, r.draft().String(), publishing.RequestApproval{})
	r.OK(err)
}

// TestApproval_GuestIsMailedWhenItEnds checks that only a guest who approved gets a mail, because
// guests get no notifications.
func TestApproval_GuestIsMailedWhenItEnds(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	settings := publishing.ChangeSettings{Settings: []byte(`{"a":1}`)}
	for name, answer := range map[string]publishing.ApprovalAction{"approved": publishing.ActionApprove, "did not answer": "", "rejected": publishing.ActionReject} {
		post := r.draft()
		a, err := r.approvals.Request(t.Context(), r.who, post.String(), publishing.RequestApproval{ReviewerEmail: new("client@example.com")})
		r.OK(err)
		if answer != "" {
			note := "A note."
			_, err = r.approvals.ResolveByToken(t.Context(), r.token(post), publishing.ResolveApproval{Action: answer, Note: &note})
			r.OK(err)
		}
		_, err = r.posts.ChangeSettings(t.Context(), r.who, post.String(), settings)
		r.OK(err)
		want := 0
		if name == "approved" {
			want = 1
		}
		tasks := r.count(`select count(*) from jobs.river_job where kind = $1 and args->>'id' = $2`, approval.ReviewEndedTask, a.ID.String())
		if tasks != want {
			t.Errorf("a guest who %s: got %d tasks, want %d", name, tasks, want)
		}
		if want > 0 {
			r.OK(r.approvals.SendReviewEnded(t.Context(), r.who.Org, a.ID))
		}
	}
	if len(r.mails.sent) != 1 || !r.mails.sent[0].Ended || r.mails.sent[0].To != "client@example.com" {
		t.Errorf("got the mails %+v, want one about the end", r.mails.sent)
	}
}

// The mail of an organization without access waits, because the organization may get its access
// back.
func TestSendReviewMail_WaitsForASuspendedOrganization(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	mail := publishing.RequestApproval{ReviewerEmail: new("client@example.com")}
	a, err := r.approvals.Request(t.Context(), r.who, r.draft().String(), mail)
	r.OK(err)
	suspend := func(on bool) {
		r.OK(r.DB.InRole(t.Context(), pg.Gate, func(tx pgx.Tx) error {
			const set = `update organization set suspended_at = case when $2 then now() end where id = $1`
			_, err := tx.Exec(t.Context(), set, r.who.Org, on)
			return err
		}))
	}
	suspend(true)
	if err := r.approvals.SendReviewMail(t.Context(), r.who.Org, a.ID); !errors.Is(err, jobs.ErrLater) {
		t.Errorf("a mail of a suspended organization: got %v, want ErrLater", err)
	}
	suspend(false)
	r.OK(r.approvals.SendReviewMail(t.Context(), r.who.Org, a.ID))
	if len(r.mails.sent) != 1 {
		t.Errorf("got %d mails, want the one that waited", len(r.mails.sent))
	}
}

// An organization whose connections are all in use is left for the next sweep, and the sweep
// continues with the others.
func TestSweepApprovals_BusyOrganizationDoesNotStopOthers(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	r.request(r.draft(), false)
	busy := r.who
	r.who = r.Organization()
	r.channel = r.Connect(r.who.Org).String()
	r.request(r.draft(), false)
	r.clock.ahead.Store(int64(publishing.ApprovalLife))
	dbtest.Occupy(t, r.DB, busy.Org.UUID())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	n, err := r.approvals.SweepApprovals(ctx)
	if n != 1 || err == nil {
		t.Errorf("the sweep changed %d and returned %v, want 1 and the error of the busy organization", n, err)
	}
}

func TestApproval_UnsweptExpiredRequestGivesWay(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	post := r.draft()
	r.request(post, false)
	r.clock.ahead.Store(int64(publishing.ApprovalLife))
	r.wantStatus(post, status{publishing.StateDraft, publishing.ApprovalExpired})
	r.request(post, false)
	r.wantStatus(post, status{publishing.StateDraft, publishing.ApprovalPending})
}

func TestSweepApprovals_BadRowDoesNotStopOthers(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	bad := r.draft()
	first := r.request(bad, false)
	others := []publishing.PostID{r.draft(), r.draft(), r.draft()}
	for _, post := range others {
		r.request(post, false)
	}
	owner, err := pgx.Connect(t.Context(), r.Address)
	r.OK(err)
	defer owner.Close(context.WithoutCancel(t.Context()))
	_, err = owner.Exec(t.Context(), `create function refuse() returns trigger language plpgsql as $f$ begin
		if new.id = '`+first.ID.String()+`' then raise exception 'this row is bad' using errcode = '23514'; end if; return new; end $f$;
		create trigger refuse before update on approval for each row execute function refuse()`)
	r.OK(err)
	r.clock.ahead.Store(int64(publishing.ApprovalLife))
	n, err := r.approvals.SweepApprovals(t.Context())
	if n != len(others) || err == nil {
		t.Errorf("the sweep changed %d and returned %v, want %d and the error of the bad row", n, err, len(others))
	}
}

func TestApproval_OneWebhookEventEach(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	r.Tenant(r.who.Org, `insert into webhook (org_id, id, name, url, signing_key, created_at, updated_at)
		values ($1, gen_random_uuid(), 'hook', 'https://example.com', 'sealed', now(), now())`, r.who.Org)
	told := func(event publishing.WebhookEvent, approval string) int {
		return r.count(`select count(*) from webhook_event where event = $1 and data->>'status' = $2 and data->'reviewUrl' = 'null'`, event, approval)
	}
	post := r.draft()
	a := r.request(post, false)
	_, err := r.resolve(a, publishing.ActionApprove)
	r.OK(err)
	_, err = r.approvals.Withdraw(t.Context(), r.who, a.ID.String())
	r.OK(err)
	other := r.request(post, false)
	_, err = r.approvals.Withdraw(t.Context(), r.who, other.ID.String())
	r.OK(err)
	requested, approved, none := told(publishing.WebhookApprovalRequested, "PENDING"),
		told(publishing.WebhookApprovalResolved, "APPROVED"), told(publishing.WebhookApprovalResolved, "NONE")
	if requested != 2 || approved != 1 || none != 1 {
		t.Errorf("webhooks are told of %d requests, %d approvals and %d withdrawals, want 2, 1 and 1", requested, approved, none)
	}
}

// Each request, and each answer by somebody else, causes a notification. A request that ends
// without an answer causes none.
func TestApproval_NotifiesOfRequestAndAnswer(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	notified := func(answer publishing.ApprovalAnswer, approval publishing.ApprovalID) int {
		return r.count(`select count(*) from notification where answer = $1 and approval_id = $2
			and (person_id is not null) = (answer <> 'pending') and mail_at > last_at`, answer, approval)
	}
	answered, withdrawn := r.request(r.draft(), false), r.request(r.draft(), false)
	_, err := r.resolve(answered, publishing.ActionReject)
	r.OK(err)
	_, err = r.approvals.Withdraw(t.Context(), r.who, withdrawn.ID.String())
	r.OK(err)
	for _, c := range []struct {
		answer publishing.ApprovalAnswer
		of     publishing.ApprovalID
		want   int
	}{
		{answer: publishing.AnswerPending, of: answered.ID, want: 1}, {answer: publishing.AnswerRejected, of: answered.ID, want: 1},
		{answer: publishing.AnswerPending, of: withdrawn.ID, want: 1}, {answer: publishing.AnswerApproved, of: answered.ID},
		{answer: publishing.AnswerRejected, of: withdrawn.ID},
	} {
		if got := notified(c.answer, c.of); got != c.want {
			t.Errorf("got %d notifications of %s with the answer %s, want %d", got, c.of, c.answer, c.want)
		}
	}
}

func TestApproval_MailsPerHourAreLimited(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	post := r.draft()
	r.request(post, false)
	r.Tenant(r.who.Org, `insert into approval (org_id, id, post_id, status, token_hash, sealed_token, reviewer_email, requested_at, expires_at, resolved_at)
		select $1, gen_random_uuid(), $2, 'VOID', decode(md5(n::text), 'hex'), 'x', 'client@example.com', now(), now() + interval '7 days', now()
		from generate_series(1, $3::integer) n`, r.who.Org, post, publishing.MaxReviewMails)
	_, err := r.approvals.Request(t.Context(), r.who, r.draft().String(), publishing.RequestApproval{ReviewerEmail: new("client@example.com")})
	r.wantKind("a request after too many mails", err, fault.RateLimited)
	r.request(r.draft(), false)
}

// A request that mails a reviewer locks the organization before the post, as the commands that
// count posts do.
func TestApproval_RequestLocksTheOrganizationFirst(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	post := r.draft()
	ended := make(chan error, 1)
	r.OK(r.DB.InOrg(t.Context(), r.who.Org.UUID(), func(tx pgx.Tx) error {
		var database string
		err := tx.QueryRow(t.Context(), `select current_database()::text from organization where id = $1 for no key update`,
			r.who.Org).Scan(&database)
		if err != nil {
			return err
		}
		go func() {
			mail := publishing.RequestApproval{ReviewerEmail: new("client@example.com")}
			_, err := r.approvals.Request(t.Context(), r.who, post.String(), mail)
			ended <- err
		}()
		super := dbtest.Super(t)
		for waits := 0; waits == 0; {
			if len(ended) > 0 {
				t.Fatal("it was over before it waited:", <-ended)
			}
			r.OK(super.QueryRow(t.Context(), `select count(*) from pg_stat_activity
				where datname = $1 and query like '-- publishing.OrganizationLock%' and wait_event_type = 'Lock'`, database).Scan(&waits))
		}
		rows, err := tx.Query(t.Context(), `select id from post where id = $1 for update skip locked`, post)
		if err != nil {
			return err
		}
		free, err := pgx.CollectRows(rows, pgx.RowTo[publishing.PostID])
		if err == nil && len(free) != 1 {
			t.Error("the request that waits for the organization has locked the post")
		}
		return err
	}))
	r.OK(<-ended)
}

// A withdrawal that waits for a deletion of the post returns NotFound afterwards.
func TestWithdraw_DeletedPostIsNotFound(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	post := r.draft()
	a, err := r.resolve(r.request(post, true), publishing.ActionApprove)
	r.OK(err)
	ended := make(chan error, 1)
	r.OK(r.DB.InOrg(t.Context(), r.who.Org.UUID(), func(tx pgx.Tx) error {
		var database string
		err := tx.QueryRow(t.Context(), `update post set deleted_at = now() where id = $1 returning current_database()::text`,
			post).Scan(&database)
		if err != nil {
			return err
		}
		go func() {
			_, err := r.approvals.Withdraw(t.Context(), r.who, a.ID.String())
			ended <- err
		}()
		super := dbtest.Super(t)
		for waits := 0; waits == 0; {
			if len(ended) > 0 {
				t.Fatal("it was over before it waited:", <-ended)
			}
			r.OK(super.QueryRow(t.Context(), `select count(*) from pg_stat_activity
				where datname = $1 and query like '-- publishing.GroupLock%' and wait_event_type = 'Lock'`, database).Scan(&waits))
		}
		return nil
	}))
	r.wantKind("the withdrawal", <-ended, fault.NotFound)
}

func TestApproval_DeletedGroupEndsIt(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	post := r.draft()
	r.request(post, false)
	d := r.wantStatus(post, status{publishing.StateDraft, publishing.ApprovalPending})
	r.OK(r.posts.DeleteGroup(t.Context(), r.who, d.Root.Group.String()))
	if n := r.count(`select count(*) from approval where post_id = $1 and status = 'VOID'`, post); n != 1 {
		t.Errorf("%d requests of a deleted group have ended, want 1", n)
	}
}

// An older request may have the greater id, because another process, with a different clock,
// created it.
func TestApproval_PendingRequestComesBeforeGreaterID(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	post := r.draft()
	r.Tenant(r.who.Org, `insert into approval (org_id, id, post_id, status, token_hash, sealed_token, requested_at, expires_at, resolved_at)
		values ($1, 'ffffffff-ffff-7fff-bfff-ffffffffffff', $2, 'VOID', 'x', 'x', now(), now() + interval '7 days', now())`, r.who.Org, post)
	r.request(post, false)
	r.wantStatus(post, status{publishing.StateDraft, publishing.ApprovalPending})
}
