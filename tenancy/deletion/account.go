package deletion

import (
	"context"
	"slices"
	"time"

	"crier/platform/fault"
	"crier/tenancy"
	"crier/tenancy/db"
	deletionstore "crier/tenancy/deletion/store"
	"crier/tenancy/entry"
	"crier/tenancy/notice"
)

// DeleteAccount requests the deletion of the principal's account and of the organizations that the
// person owns. All of the person's sessions end immediately, and these organizations stop
// publishing. After DELETE_GRACE, Purge deletes the account and these organizations, unless the
// person has signed in and undone the deletion.
//
// If the deletion has already been requested, DeleteAccount changes nothing. It returns
// fault.Invalid if the person owns an organization that has other members, unless that organization
// is already marked for deletion.
func (s *Deletions) DeleteAccount(ctx context.Context, p tenancy.Principal, proof tenancy.Proof) error {
	const op = "tenancy.DeleteAccount"
	if _, err := s.proofs.Prove(ctx, op, p, proof); err != nil {
		return err
	}
	var owned []tenancy.OrgID
	err := s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		person, err := db.LockPerson(ctx, tx, p.Person)
		if err != nil || person.DeletedAt != nil { // another request came first
			return err
		}
		if err := s.db.ConfirmSession(ctx, tx, p); err != nil {
			return err
		}
		owned, err = s.markAccount(ctx, tx, op, p, person)
		return err
	})
	if err != nil {
		return err
	}
	return s.access.AccessChanged(ctx, owned...)
}

// markAccount marks an account for deletion and returns the organizations that are deleted with it.
// The caller must have locked the person. markAccount first ends the person's sessions, and only
// then waits for running commands in these organizations. In the opposite order, it could deadlock
// with commands that hold locks on the sessions.
func (s *Deletions) markAccount(ctx context.Context, tx *db.GateTx, op string, p tenancy.Principal,
	person tenancy.Person) (marked []tenancy.OrgID, err error) {
	now := s.clock.Now()
	if err := db.AuditPerson(ctx, tx, person.ID, p.Event(tenancy.ActionAccountDeleted, ""), now); err != nil {
		return nil, err
	}
	if _, err := entry.EndSessions(ctx, tx, person.ID, tenancy.SessionID{}, ""); err != nil {
		return nil, err
	}
	if marked, err = s.markOwned(ctx, tx, op, person.ID, now); err != nil {
		return nil, err
	}
	if err := deletionstore.SetPersonDeleted(ctx, tx, person.ID, &now); err != nil {
		return nil, err
	}
	until := now.Add(s.cfg.DeleteGrace)
	return marked, s.notices.Notify(ctx, tx, notice.AccountDeletion, person.Email, notice.Notice{Until: until})
}

// markOwned marks for deletion all organizations that a person owns, and returns the newly marked
// ones. It returns Invalid if a newly marked organization has other members. It counts the members
// after marking, because nobody can join a marked organization.
func (s *Deletions) markOwned(ctx context.Context, tx *db.GateTx, op string, person tenancy.PersonID,
	now time.Time) (marked []tenancy.OrgID, err error) {
	owned, err := deletionstore.OwnedOrganizations(ctx, tx, person)
	if err != nil {
		return nil, err
	}
	for _, o := range owned {
		if o.Deleted {
			continue
		}
		if err := deletionstore.SetOrganizationDeleted(ctx, tx, o.Org, &now, person); err != nil {
			return nil, err
		}
		marked = append(marked, o.Org)
	}
	if owned, err = deletionstore.OwnedOrganizations(ctx, tx, person); err != nil {
		return nil, err
	}
	shared := func(o deletionstore.Owned) bool { return o.Members > 1 && slices.Contains(marked, o.Org) }
	if slices.ContainsFunc(owned, shared) {
		return nil, &fault.Error{Kind: fault.Invalid, Op: op, Message: "The account cannot be deleted.",
			Fields: []fault.Field{{Name: "organizations", Message: "that you own must have no other members: " +
				"hand them over, remove the members, or delete the organization first"}}}
	}
	return marked, nil
}

// RestoreAccount undoes the deletion of an account and of the organizations that were deleted with
// it, and returns those organizations. now must be the database's time. RestoreAccount returns
// fault.Gone if it is too late to restore the account.
func (s *Deletions) RestoreAccount(ctx context.Context, tx *db.GateTx, person tenancy.Person,
	now time.Time, from tenancy.Source) (restored []tenancy.OrgID, err error) {
	if person.DeletedAt == nil {
		return nil, nil
	}
	if s.graceIsOver(person.DeletedAt, now) {
		return nil, fault.New(fault.Gone, "tenancy.Restore", "It is too late to restore this account.")
	}
	if restored, err = deletionstore.DeletedWith(ctx, tx, person.ID); err != nil {
		return nil, err
	}
	for _, org := range restored {
		if err := deletionstore.SetOrganizationDeleted(ctx, tx, org, nil, tenancy.PersonID{}); err != nil {
			return nil, err
		}
	}
	if err := deletionstore.SetPersonDeleted(ctx, tx, person.ID, nil); err != nil {
		return nil, err
	}
	event := db.PersonEvent(person, from, tenancy.ActionAccountRestored)
	if err := db.AuditPerson(ctx, tx, person.ID, event, s.clock.Now()); err != nil {
		return nil, err
	}
	return restored, s.notices.Notify(ctx, tx, notice.DeletionUndone, person.Email, notice.Notice{})
}
