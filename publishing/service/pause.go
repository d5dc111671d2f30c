package service

import (
	"context"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

// Pause keeps back what would be published, or lets it go on. Whoever manages the organization may pause the whole of it, every member a channel or a group of channels.
func (s *Posts) Pause(ctx context.Context, p tenancy.Principal, cmd publishing.SetPause) (out publishing.PauseResult, err error) {
	const op = "publishing.SetPause"
	if err := cmd.Validate(); err != nil {
		return out, err
	}
	if cmd.Scope == publishing.PauseOrganization && !p.Role.Manages() {
		return out, fault.New(fault.Forbidden, op, "Only an administrator may pause the whole organization.")
	}
	subject, found := subjectOf(p, cmd)
	if !found {
		return out, nothingToPause(op, cmd.Scope)
	}
	err = s.inOrg(ctx, p.Org, func(tx *publishingstore.Tx) error {
		missed, known, err := tx.Pause(ctx, cmd.Scope, subject, cmd.Paused, by(p), s.cfg.HeldFor)
		if err != nil {
			return err
		}
		if !known {
			return nothingToPause(op, cmd.Scope)
		}
		out.Missed = missed
		return nil
	})
	if err != nil {
		return out, s.ended(op, err)
	}
	err = s.inOrg(ctx, p.Org, func(tx *publishingstore.Tx) error {
		if cmd.Paused {
			if err := tx.Revoke(ctx, cmd.Scope, subject, by(p)); err != nil {
				return err
			}
		}
		held, err := tx.Held(ctx, cmd.Scope, subject)
		if err != nil {
			return err
		}
		held.Missed, held.Paused = out.Missed, cmd.Paused
		out = held
		return nil
	})
	return out, s.ended(op, err)
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

// Queue is what every connector's posts wait in, by the names that monitors know it under.
const queueName, queueAlias = "publish", "post"

// Figures tells how a queue stands over all organizations: all of it, or one platform's share by the platform's identifier.
func (s *Posts) Figures(ctx context.Context, queue string) (publishing.Figures, error) {
	const op = "publishing.Figures"
	if queue == queueName || queue == queueAlias {
		queue = ""
	} else if _, ok := s.deps.Connectors.Get(queue); !ok {
		return publishing.Figures{}, fault.New(fault.NotFound, op, "There is no such queue: ask for publish, or for a platform.")
	}
	f, err := s.store.Figures(ctx, queue)
	return f, internal(op, err)
}
