package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/publishing/scheduler/dispatch"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tests/dbtest"
	"crier/tests/publishtest"
)

// fail finishes a claim with an error.
func (r *rig) fail(c dispatch.Claimed, code string) dispatch.Finished {
	r.Helper()
	o := r.Outcome(c, dispatch.ResultError, "")
	o.Code, o.Error = code, "No."
	return r.FinishOne(o)
}

// maybeSent returns maybe_sent of a post and of its publication.
func (r *rig) maybeSent(post publishing.PostID) (ofPost, ofPublication bool) {
	r.Helper()
	r.OK(r.DB.InRole(r.Context(), pg.Clock, func(tx pgx.Tx) error {
		return tx.QueryRow(r.Context(), `select p.maybe_sent, x.maybe_sent from post p join publication x on x.post_id = p.id and x.number = p.republish where p.id = $1`, post).
			Scan(&ofPost, &ofPublication)
	}))
	return ofPost, ofPublication
}

// unknown returns a post with its only claim. The call got no response, and the post went back to
// the queue without proof.
func (r *rig) unknown() (publishing.PostID, dispatch.Claimed) {
	r.Helper()
	post := r.Post(r.Channel(), -time.Second)
	c := r.Claim(1)[0]
	r.Mark(c)
	r.FinishOne(r.Outcome(c, dispatch.ResultUnknown, ""))
	r.FinishOne(r.Outcome(c, dispatch.ResultRetry, ""))
	r.WantState(post, publishing.StateQueue)
	if ofPost, ofPublication := r.maybeSent(post); !ofPost || !ofPublication {
		r.Fatalf("a retry without a proof forgot that the post may have been sent: post %v, publication %v", ofPost, ofPublication)
	}
	return post, c
}

func TestFinish_GivesUpMaybeSentPostAsUnknown(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(r *rig, post publishing.PostID){
		"when its tries are used up": func(r *rig, _ publishing.PostID) {
			r.fail(r.Claim(1)[0], publishing.CodeRetriesUsedUp)
		},
		"when the platform refuses a later try": func(r *rig, _ publishing.PostID) {
			c := r.Claim(1)[0]
			r.Mark(c)
			r.fail(c, publishing.CodeRejected)
		},
		"when its time is over": func(r *rig, post publishing.PostID) {
			r.Clock(`update post set due = now() - interval '25 hours' where id = $1`, post)
			if n := r.Expire(r.Lease); n != 1 {
				r.Fatalf("%d expired", n)
			}
		},
		"when its preparation never ends": func(r *rig, post publishing.PostID) {
			r.Claim(1)
			r.Clock(`update post set updated_at = now() - interval '7 hours' where id = $1`, post)
			if n := r.age(r.Lease); n != 1 {
				r.Fatalf("%d given up", n)
			}
		},
		"when its worker always ends": func(r *rig, post publishing.PostID) {
			r.Clock(`update post set reaps = $2 where id = $1`, post, schedulerstore.MaxReaps-1)
			r.Claim(1)
			r.Clock(`update post set claim_until = now() - interval '1 second' where id = $1`, post)
			r.reap(r.Lease)
		},
		"when a pause lasted too long": func(r *rig, post publishing.PostID) {
			r.SetPause(publishing.PauseOrganization, r.Org, true, time.Hour)
			r.Clock(`update post set due = now() - interval '2 hours' where id = $1`, post)
			r.SetPause(publishing.PauseOrganization, r.Org, false, time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			post, _ := r.unknown()
			end(r, post)
			p := r.Root(post)
			if p.State != publishing.StateError || p.ErrorCode == nil || *p.ErrorCode != publishing.CodeOutcomeUnknown || !p.OutcomeUnknown {
				t.Fatalf("a post that may have been sent is reported as %s %v, want ERROR outcome_unknown", p.State, p.ErrorCode)
			}
		})
	}
}

func (r *rig) phase(post publishing.PostID) string {
	r.Helper()
	return publishtest.Value[string](r.Base, `select phase from post where id = $1`, post)
}

// The success is stored while Unmark waits for the publication, as Finish would store it for an
// ended claim.
func TestUnmark_DuringLateSuccessChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post, _ := r.unknown()
	second := r.Claim(1)[0]
	r.Mark(second)
	pub := r.Publication(post)
	var back bool
	r.besideSuccess(pub, "late", "CommitUnmark", func() (err error) {
		back, err = schedulerstore.Unmark(t.Context(), r.Store, post, second.Token, pub, time.Minute, "test")
		return err
	})
	if back || r.phase(post) != "committing" {
		t.Errorf("the mark is taken back beside a success: %v; the post is %s", back, r.phase(post))
	}
}

// besideSuccess begins a statement while another transaction has stored a success of a publication,
// and commits that transaction once the statement waits for it. Like Finish for an ended claim,
// that transaction locks no post.
func (r *rig) besideSuccess(pub publishing.PublicationID, release, statement string, do func() error) {
	r.Helper()
	watch, ended := dbtest.Super(r.T), make(chan error, 1)
	r.OK(r.DB.InRole(r.Context(), pg.Clock, func(tx pgx.Tx) error {
		if _, err := tx.Exec(r.Context(), `update publication set phase = 'done', maybe_sent = false, release_id = $2, done_at = now() where id = $1`, pub, release); err != nil {
			return err
		}
		go func() { ended <- do() }()
		for waits := false; !waits && len(ended) == 0; time.Sleep(10 * time.Millisecond) {
			err := watch.QueryRow(r.Context(), `select exists (select from pg_stat_activity where datname = $1 and wait_event_type = 'Lock' and query like '%' || $2 || '%')`,
				r.DB.Pool(pg.Clock).Config().ConnConfig.Database, statement).Scan(&waits)
			if err != nil {
				return err
			}
		}
		return nil
	}))
	r.OK(<-ended)
}

// If two successes are stored concurrently, the one that waits is stored as the second, in either
// order.
func TestFinish_ConcurrentSecondSuccessIsNotLost(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"of the current claim": false, "of an ended claim": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			post, c := r.unknown()
			if !late {
				c = r.Claim(1)[0]
				r.Mark(c)
			} else {
				r.Mark(r.Claim(1)[0])
			}
			out := []dispatch.Outcome{r.Outcome(c, dispatch.ResultPublished, "two")}
			var done []dispatch.Finished
			r.besideSuccess(out[0].Publication, "one", "Finish", func() (err error) {
				done, err = schedulerstore.Finish(t.Context(), r.Store, out, time.Second, "test")
				return err
			})
			if len(done) == 0 || !done[len(done)-1].Locked {
				t.Fatalf("beside the first success: %+v, want that it is locked", done)
			}
			if f := r.FinishOne(out[0]); !f.PublishedTwice || f.Locked {
				t.Errorf("after it: %+v, want a second success", f)
			}
			r.WantInTimeline(post, publishing.EventPublishedTwice)
		})
	}
}

func TestPartDone_DuringAnotherSuccessSendsNoFurtherPart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.Post(r.Channel(), -time.Second, 0)
	c := r.Claim(1)[0]
	works, err := schedulerstore.Load(t.Context(), r.Store, []publishing.PostID{post})
	r.OK(err)
	x, release := works[0].Parts[0], "two"
	x.ReleaseID = &release
	more := true
	r.besideSuccess(x.ID, "one", "PartDone", func() (err error) {
		more, err = schedulerstore.PartDone(t.Context(), r.Store, post, c.Token, x, time.Minute, "test")
		return err
	})
	if more {
		t.Error("the next part may go although this one is out under another release id")
	}
}

// A refused call proves nothing about an earlier call of the same part.
func TestUnmark_AfterLateSuccessChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post, first := r.unknown()
	second := r.Claim(1)[0]
	r.Mark(second)
	r.FinishOne(r.Outcome(first, dispatch.ResultPublished, "late"))
	if back, err := schedulerstore.Unmark(t.Context(), r.Store, post, second.Token, r.Publication(post), time.Minute, "test"); err != nil || back {
		t.Fatalf("the call of a published part may be repeated: %v, %v", back, err)
	}
	if phase := r.phase(post); phase != "committing" {
		t.Errorf("the post is %s, as if nothing had been sent", phase)
	}
	r.FinishOne(r.Outcome(second, dispatch.ResultRetry, ""))
	r.fail(r.Claim(1)[0], publishing.CodeRetriesUsedUp)
	if p := r.Root(post); p.State != publishing.StatePublished || *p.ReleaseID != "late" {
		t.Errorf("in the end the post is %s", p.State)
	}
}

func TestFinish_ProofEndsMaybeSent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.Post(r.Channel(), -time.Second)
	c := r.Claim(1)[0]
	r.Mark(c)
	r.FinishOne(r.Outcome(c, dispatch.ResultUnknown, ""))
	o := r.Outcome(c, dispatch.ResultRetry, "")
	o.Proven = true
	r.FinishOne(o)
	if ofPost, ofPublication := r.maybeSent(post); ofPost || ofPublication {
		t.Fatal("a proof that nothing was published does not end maybe_sent")
	}
	r.fail(r.Claim(1)[0], publishing.CodeRejected)
	if p := r.Root(post); *p.ErrorCode != publishing.CodeRejected || p.OutcomeUnknown {
		t.Fatalf("a post that is proved absent is reported as %v", *p.ErrorCode)
	}
}

func TestReap_MarksCommittingPostMaybeSent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.Post(r.Channel(), -time.Second)
	r.Mark(r.Claim(1)...)
	r.Clock(`update post set claim_until = now() - interval '1 second' where id = $1`, post)
	r.reap(r.Lease)
	r.WantState(post, publishing.StateUnknown)
	if ofPost, ofPublication := r.maybeSent(post); !ofPost || !ofPublication {
		t.Fatalf("post %v, publication %v", ofPost, ofPublication)
	}
}

// move moves the group of a post like a person would. It returns an error if the move is refused.
func (r *rig) move(post publishing.PostID, to publishing.State, republish bool) (refused error) {
	r.Helper()
	group := r.GroupOf(post)
	r.OK(r.InOrg(func(tx *db.Tx) error {
		old, err := poststore.LockGroup(r.Context(), tx, group)
		if err != nil {
			return err
		}
		refused = publishing.Move(old[0].State, to, old[0].OutcomeUnknown, old[0].Published, republish)
		if refused != nil {
			return nil
		}
		_, err = poststore.Move(r.Context(), tx, old, to, to == publishing.StateDraft && !republish, "test")
		return err
	}))
	return refused
}

func TestMove_UnscheduleKeepsMaybeSent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post, c := r.unknown()
	if err := r.move(post, publishing.StateDraft, false); err != nil {
		t.Fatalf("un-scheduling is refused: %v", err)
	}
	r.WantState(post, publishing.StateDraft)
	if ofPost, ofPublication := r.maybeSent(post); !ofPost || !ofPublication {
		t.Fatal("un-scheduling forgot that the post may have been sent")
	}
	if err := r.move(post, publishing.StateQueue, false); err == nil {
		t.Fatal("a draft that may have been sent is scheduled again without republish")
	}
	late := r.Outcome(c, dispatch.ResultPublished, "late")
	if f := r.FinishOne(late); f.State != publishing.StatePublished {
		t.Fatalf("a late success of a draft is answered with %+v", f)
	}
	if p := r.Root(post); p.State != publishing.StatePublished || *p.ReleaseID != "late" {
		t.Fatalf("the post is %s, its release %s, want PUBLISHED as late", p.State, *p.ReleaseID)
	}
}

func TestFinish_AcceptsLateSuccess(t *testing.T) {
	t.Parallel()
	t.Run("of a post that was given up under another claim", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		post, first := r.unknown()
		r.fail(r.Claim(1)[0], publishing.CodeRetriesUsedUp)
		if f := r.FinishOne(r.Outcome(first, dispatch.ResultPublished, "late")); f.State != publishing.StatePublished || f.PublishedTwice {
			t.Fatalf("the late success returns %+v, want PUBLISHED once", f)
		}
		if p := r.Root(post); p.State != publishing.StatePublished || *p.ReleaseID != "late" || p.OutcomeUnknown || p.Error != nil {
			t.Fatalf("the post is %+v, want PUBLISHED as late without an error", p)
		}
	})
	t.Run("of a post that waits for its next try, which is then not made", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		post, first := r.unknown()
		if f := r.FinishOne(r.Outcome(first, dispatch.ResultPublished, "late")); f.State != publishing.StatePublished {
			t.Fatalf("the late success returns %+v, want PUBLISHED", f)
		}
		if got := r.Claim(1); len(got) != 0 {
			t.Fatal("it is claimed again")
		}
		if p := r.Root(post); *p.ReleaseID != "late" {
			t.Fatalf("the release of %+v is not late", p)
		}
	})
	t.Run("of a post that is being sent again, which then sends nothing", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		post, first := r.unknown()
		again := r.Claim(1)[0]
		if f := r.FinishOne(r.Outcome(first, dispatch.ResultPublished, "late")); f.State != "" {
			t.Fatalf("the late success returns %+v, want no state", f)
		}
		works, err := schedulerstore.Load(t.Context(), r.Store, []publishing.PostID{again.Post})
		r.OK(err)
		if x := works[0].Parts[0]; x.Phase != dispatch.PhaseDone || *x.ReleaseID != "late" {
			t.Fatalf("the publication is %+v, want done as late", x)
		}
		r.WantInTimeline(post, publishing.EventSent)
	})
	t.Run("a second time under another id, which raises an alarm", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		post, first := r.unknown()
		second := r.Claim(1)[0]
		r.FinishOne(r.Outcome(second, dispatch.ResultPublished, "one"))
		if f := r.FinishOne(r.Outcome(first, dispatch.ResultPublished, "one")); f.PublishedTwice {
			t.Fatal("the same release id counts as a second publication")
		}
		if f := r.FinishOne(r.Outcome(first, dispatch.ResultPublished, "two")); !f.PublishedTwice {
			t.Fatalf("a second release id is answered with %+v", f)
		}
		if kept := publishtest.Value[string](r.Base, `select release_id || ' ' || second_release_id from publication where post_id = $1`, post); kept != "one two" {
			t.Fatalf("kept are %q", kept)
		}
		r.WantInTimeline(post, publishing.EventPublishedTwice)
	})
}

func TestReap_GivesUpPostThatKillsItsWorkers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.Post(r.Channel(), -time.Second)
	for n := 1; n <= schedulerstore.MaxReaps; n++ {
		if got := r.Claim(1); len(got) != 1 {
			t.Fatalf("claim %d takes %d posts", n, len(got))
		}
		r.Clock(`update post set claim_until = now() - interval '1 second' where id = $1`, post)
		r.reap(r.Lease)
		if n > 1 && n < schedulerstore.MaxReaps && len(r.Claim(1)) != 0 {
			t.Fatalf("after %d ended workers the post does not wait", n)
		}
		r.Clock(`update post set not_before = null where id = $1`, post)
	}
	if p := r.Root(post); p.State != publishing.StateError || *p.ErrorCode != publishing.CodeTooLong {
		t.Fatalf("the post is %+v, want an error with the code %s", p, publishing.CodeTooLong)
	}
}

func TestClaim_DerivesIdentityOfSend(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.Post(r.Channel(), -time.Minute)
	type identity struct {
		id      uuid.UUID
		created time.Time
	}
	claim := func() (x identity) {
		r.Claim(1)
		r.OK(r.DB.InRole(t.Context(), pg.Clock, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `select id, created_at from publication where post_id = $1`, post).Scan(&x.id, &x.created)
		}))
		return x
	}
	first := claim()
	// This is the state after a standby was promoted without the last commits: the post is queued
	// and its claim is lost.
	r.Exec(`delete from publication where post_id = $1`, post)
	r.Clock(`update post set state = 'QUEUE', phase = null, claim_token = null, claim_holder = null, claim_until = null, attempt = 0 where id = $1`, post)
	if again := claim(); again != first {
		t.Fatalf("the same send is %+v, and after a lost commit %+v", first, again)
	}
	due := r.Root(post).Due.Truncate(time.Millisecond)
	if !first.created.Equal(due) {
		t.Fatalf("it is dated %s, want its due time %s", first.created, due)
	}
}

// The first sender of a thread may report a success after another process has found it and
// continued.
func TestFinish_LateSuccessOfAPartLeavesTheNextOneUnknown(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]dispatch.Outcome{
		"given up":  {Result: dispatch.ResultError, Code: publishing.CodeOutcomeUnknown, Error: "It is not known."},
		"sent back": {Result: dispatch.ResultRetry},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			post := r.Post(r.Channel(), -time.Second, 0) // the post has two parts
			store := func(c dispatch.Claimed, part int, o dispatch.Outcome) {
				t.Helper()
				o.Org, o.Post, o.Token, o.Publication = c.Org, c.Post, c.Token, r.PublicationAt(post, part)
				r.FinishOne(o)
			}
			first := r.Claim(1)[0]
			r.Mark(first)
			sent := dispatch.Outcome{Result: dispatch.ResultResume, ReleaseID: "release", RootID: "release"}
			store(first, 0, dispatch.Outcome{Result: dispatch.ResultUnknown})
			store(first, 0, sent)
			second := r.Claim(1)[0]
			if may, err := r.MayCommit(post, second.Token, r.PublicationAt(post, 1)); !may || err != nil {
				t.Fatalf("the mark of the next part is %v (%v), want true", may, err)
			}
			store(second, 1, dispatch.Outcome{Result: dispatch.ResultUnknown})
			store(second, 1, end)
			before := r.Root(post)
			store(first, 0, sent)
			after := r.Root(post)
			if ofPost, _ := r.maybeSent(post); !ofPost || after.State != before.State || after.OutcomeUnknown != before.OutcomeUnknown {
				t.Errorf("%s %v became %s %v, may be sent: %v", before.State, before.OutcomeUnknown, after.State, after.OutcomeUnknown, ofPost)
			}
		})
	}
}

// An organization with many destinations gets no more turns than others.
func TestFindUnknown_OrganizationsTakeTurns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	unknownAt := func(r *rig, server string) publishing.PostID {
		post := r.Post(r.ChannelAt(server), -time.Second)
		c := r.Claim(1)[0]
		r.Mark(c)
		r.FinishOne(r.Outcome(c, dispatch.ResultUnknown, ""))
		return post
	}
	for n := range 20 {
		unknownAt(r, fmt.Sprintf("host-%d.example", n))
	}
	other := r.another()
	late := unknownAt(other, "other.example")
	found, err := schedulerstore.FindUnknown(t.Context(), r.Store, other.Lease, nil, nil, time.Hour)
	if r.OK(err); len(found) != 21 {
		t.Fatalf("%d are found", len(found))
	}
	if at := slices.IndexFunc(found, func(f dispatch.UnknownPost) bool { return f.Post == late }); at > 1 || found[at].Org != other.Org {
		t.Errorf("the only one of an organization is number %d, behind those of another", at+1)
	}
}
