package scheduler

import (
	"context"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tenancy"
)

// Queue implements the use cases for the post queue: pausing, stopping and statistics. It is safe
// for concurrent use.
type Queue struct {
	cfg  Config
	deps Deps
	db   *db.DB
}

// NewQueue returns a Queue. It uses only the fields DB, Connectors and Log of deps.
func NewQueue(cfg Config, deps Deps) *Queue {
	return &Queue{cfg: cfg, deps: deps, db: deps.DB}
}

// Pause pauses or resumes an organization, a customer or a channel. When pausing, it revokes the
// claims that have not reached their irreversible call. Calls in progress run to completion. Pause
// returns what is held back and, when resuming, how many posts were abandoned as missed.
//
// When resuming, Pause first abandons the missed posts. If there are many, this takes several
// transactions. If ctx ends before they have all committed, the pause stays in force and the next
// call continues.
//
// Only a principal who manages the organization and sees all of its channels may pause or resume
// the whole organization. For anyone else, Pause returns Forbidden. It returns NotFound if the
// customer or channel does not exist, or if the principal does not see all channels of the
// customer.
//
// setPause appends the audit entry.
func (s *Queue) Pause(
	ctx context.Context, p tenancy.Principal, cmd publishing.SetPause,
) (out publishing.PauseResult, err error) {
	const op = "publishing.SetPause"
	if err := cmd.Validate(); err != nil {
		return out, err
	}
	if cmd.Scope == publishing.PauseOrganization && (!p.Role.Manages() || pg.IsNarrowed(ctx)) {
		return out, fault.New(fault.Forbidden, op, "Only an administrator with access to all channels may pause the "+
			"whole organization.")
	}
	subject, found := subjectOf(p, cmd)
	if !found {
		return out, nothingToPause(op, cmd.Scope)
	}
	missed, known, err := s.setPause(ctx, p, cmd, subject)
	if err != nil {
		return out, db.Fault(op, err)
	}
	if !known {
		return out, nothingToPause(op, cmd.Scope)
	}
	err = s.db.InOrgAs(ctx, p, func(tx *db.Tx) error {
		if cmd.Paused {
			if err := schedulerstore.Revoke(ctx, tx, cmd.Scope, subject, tenancy.ActorOf(p)); err != nil {
				return err
			}
		}
		held, err := schedulerstore.Held(ctx, tx, cmd.Scope, subject)
		if err != nil {
			return err
		}
		held.Missed, held.Paused = missed, cmd.Paused
		out = held
		return nil
	})
	return out, db.Fault(op, err)
}

// setPause sets or ends a pause. known is false if the subject does not exist.
func (s *Queue) setPause(
	ctx context.Context, p tenancy.Principal, cmd publishing.SetPause, subject any,
) (missed int, known bool, err error) {
	what := string(cmd.Scope) + " " + cmd.ID
	if !cmd.Paused {
		return s.endPause(ctx, p.Org, schedulerstore.PauseEnd{
			Scope: cmd.Scope, Subject: subject, Hold: s.cfg.PauseMaxAge, By: tenancy.ActorOf(p),
		}, func(fn func(*db.Tx) (ended bool, err error)) error {
			return s.db.InOrgAs(ctx, p, func(tx *db.Tx) error {
				ended, err := fn(tx)
				if err != nil || !ended {
					return err
				}
				return s.db.Audit(ctx, tx, p, tenancy.ActionUnpaused, what)
			})
		})
	}
	err = s.db.InOrgAs(ctx, p, func(tx *db.Tx) error {
		known, err = schedulerstore.Pause(ctx, tx, cmd.Scope, subject, tenancy.ActorOf(p))
		if err != nil || !known {
			return err
		}
		return s.db.Audit(ctx, tx, p, tenancy.ActionPaused, what)
	})
	return 0, known, err
}

func subjectOf(p tenancy.Principal, cmd publishing.SetPause) (subject any, ok bool) {
	switch cmd.Scope {
	case publishing.PauseChannel:
		return parsed[publishing.ChannelTag](cmd.ID)
	case publishing.PauseCustomer:
		return parsed[publishing.CustomerTag](cmd.ID)
	default:
		return p.Org, true
	}
}

func parsed[T any](sent string) (any, bool) {
	v, ok := id.Parse[T](sent)
	return v, ok
}

func nothingToPause(op string, scope publishing.PauseScope) error {
	if scope == publishing.PauseChannel {
		return fault.New(fault.NotFound, op, "There is no such channel.")
	}
	return fault.New(fault.NotFound, op, "There is no such group of channels.")
}
