package service

import (
	"context"
	"fmt"
	"time"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

// maxMemberships is the number of organizations that a person can be a member of, with any plan. The look-up of a session
// returns all of them.
const maxMemberships = 250

// checkMemberships returns Conflict when a locked person is a member of too many organizations to get another one.
func checkMemberships(ctx context.Context, tx *tenancystore.GateTx, op string, person tenancy.PersonID) error {
	all, err := tx.Memberships(ctx, person)
	if err == nil && len(all) >= maxMemberships {
		return fault.New(fault.Conflict, op, "You are a member of 250 organizations: leave or delete one first.")
	}
	return err
}

// creationWindow is the period of ORGANIZATIONS_PER_DAY.
const creationWindow = 24 * time.Hour

// checkCreations returns an error if a locked person may not create another organization: Conflict
// or RateLimited at the limits of the instance, and Quota if the person has created too many
// organizations with the default plan. It counts the organizations of all accounts of one mailbox.
func (a *Accounts) checkCreations(
	ctx context.Context, tx *tenancystore.GateTx, op string, person tenancy.PersonID,
) error {
	if err := tx.LockMailbox(ctx, person); err != nil {
		return err
	}
	created, err := tx.CreatedOrganizations(ctx, person, maxOrganizations)
	if err != nil {
		return err
	}
	if most := a.cfg.OrganizationsPerPerson; most > 0 && len(created) >= most {
		return fault.New(fault.Conflict, op, fmt.Sprintf("You have created %d organizations, and one person may create %d: "+
			"delete one (it counts until it is purged) or ask the operator.", len(created), most))
	}
	if most := a.cfg.OrganizationsPerDay; most > 0 && len(created) >= most {
		if wait := created[most-1].At.Add(creationWindow).Sub(a.clock.Now()); wait > 0 {
			return &fault.Error{Kind: fault.RateLimited, Op: op, RetryAfter: wait,
				Message: fmt.Sprintf("One person may create %d organizations in 24 hours; wait before the next one.", most)}
		}
	}
	return a.checkDefaultPlan(op, created)
}

// checkDefaultPlan returns Quota if too many of the organizations that a person created have the
// default plan. Otherwise a person could multiply the plan's limits with further organizations.
func (a *Accounts) checkDefaultPlan(op string, created []tenancystore.Created) error {
	most := a.cfg.DefaultPlanOrganizations
	if a.deps.Plans == nil || most == 0 {
		return nil
	}
	orgs := make([]tenancy.OrgID, len(created))
	for i, c := range created {
		orgs[i] = c.Org
	}
	plan, n := a.deps.Plans.OnDefault(orgs)
	if n < most {
		return nil
	}
	return &fault.Error{
		Kind: fault.Quota, Op: op, Limit: &fault.Limit{Name: string(tenancy.LimitOrganizations), Current: n, Allowed: most},
		Message: fmt.Sprintf("You have created %d organizations with the plan %s, and one person may have %d. "+
			"Choose a larger plan for one, or delete one (it counts until it is purged).", n, plan, most),
	}
}

// CreateOrganization creates an organization that the principal's person owns. The name has 3 to
// 128 characters. It returns fault.Conflict if the person has too many organizations, RateLimited
// if the person has created too many in a day, and Quota if the person has created too many with
// the default plan.
func (a *Accounts) CreateOrganization(ctx context.Context, p tenancy.Principal, name string) (
	out tenancy.Organization, err error) {
	const op = "tenancy.CreateOrganization"
	var in tenancy.Inputs
	name = in.Name("name", name, 3, 128)
	if err := in.Err(op); err != nil {
		return out, err
	}
	err = a.inPerson(ctx, op, p, func(tx *tenancystore.GateTx, _ tenancy.Person) error {
		if err := checkMemberships(ctx, tx, op, p.Person); err != nil {
			return err
		}
		if err := a.checkCreations(ctx, tx, op, p.Person); err != nil {
			return err
		}
		made, err := a.makeOrganization(ctx, tx, p, p.Person, name)
		out = tenancy.Organization{ID: made, Name: name}
		return err
	})
	return out, err
}

// Senders returns the mailboxes against which the principal's mails count: the mailbox of the creator
// of the organization, or of its owner if the creator has left, and the mailbox of the principal's
// person. People who have left an organization neither use up nor share its limits. A mailbox is
// returned as a hash, which is the same for all its addresses.
func (a *Accounts) Senders(ctx context.Context, p tenancy.Principal) (mailboxes []string, err error) {
	const op = "tenancy.Senders"
	err = a.inOrg(ctx, op, p.Org, func(tx *tenancystore.OrgTx) error {
		mailboxes, err = tx.Senders(ctx, p.Person)
		return err
	})
	return mailboxes, err
}

// ChooseOrganization returns fault.Forbidden unless the principal's person can choose the organization.
func (a *Accounts) ChooseOrganization(ctx context.Context, p tenancy.Principal, org string) error {
	const op = "tenancy.ChooseOrganization"
	all, err := a.Organizations(ctx, p)
	if err != nil {
		return err
	}
	for _, o := range all {
		if o.ID.String() == org && o.DeletedAt == nil {
			return nil
		}
	}
	return fault.New(fault.Forbidden, op, "You are not a member of this organization.")
}

// Organization returns the principal's organization, or fault.NotFound.
func (a *Accounts) Organization(ctx context.Context, p tenancy.Principal) (out tenancy.Organization, err error) {
	const op = "tenancy.Organization"
	err = a.inOrg(ctx, op, p.Org, func(tx *tenancystore.OrgTx) error {
		out, err = tx.Organization(ctx)
		return err
	})
	return out, noOrganization(op, err)
}

// noOrganization returns NotFound for an organization that is gone.
func noOrganization(op string, err error) error {
	if pg.IsNoRows(err) {
		return fault.New(fault.NotFound, op, "There is no such organization.")
	}
	return err
}

// UpdateOrganization changes settings of the principal's organization, at least one, and returns them. A new time zone
// applies to new channels; existing channels and recurring posts keep theirs. An organization that is gone is
// fault.NotFound.
func (a *Accounts) UpdateOrganization(ctx context.Context, p tenancy.Principal, c tenancy.OrganizationChange) (
	out tenancy.Organization, err error) {
	const op = "tenancy.UpdateOrganization"
	if err := c.Clean(op); err != nil {
		return out, err
	}
	err = a.inOrgAs(ctx, op, p, func(tx *tenancystore.OrgTx) error {
		if out, err = tx.LockOrganization(ctx); err != nil {
			return err
		}
		if c.Name != nil {
			out.Name = *c.Name
		}
		if c.Description != nil {
			out.Description = *c.Description
		}
		if err := tx.UpdateOrganization(ctx, out); err != nil {
			return err
		}
		if c.Timezone != nil {
			out.Timezone = zoneOf(*c.Timezone)
			if err := tx.SetTimezone(ctx, out.Timezone); err != nil {
				return err
			}
		}
		return tx.Audit(ctx, p.Event(tenancy.ActionOrganizationChanged, out.Name), a.clock.Now())
	})
	return out, noOrganization(op, err)
}

const (
	// auditsAtOnce is the number of queries of audit logs of all organizations, and auditsWaiting of those of one
	// organization that wait for auditWait.
	auditsAtOnce, auditsWaiting = 2, 4
	auditWait                   = 10 * time.Second
)

// queryAudit waits for a place for a query of an audit log. It returns RateLimited when too many wait.
func (a *Accounts) queryAudit(ctx context.Context, op string, org tenancy.OrgID) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, auditWait)
	defer cancel()
	leave, err = a.audits.Enter(ctx, org)
	if err != nil {
		return nil, &fault.Error{Kind: fault.RateLimited, Op: op, RetryAfter: auditWait, Err: err,
			Message: "Too many queries of audit logs are running; try again in a moment."}
	}
	return leave, nil
}

// Audit returns entries of the audit log of the principal's organization, the newest first, and whether there are more.
// Who does not manage the organization gets the own entries, among them those of an administrator of the instance who
// acted as the person. Audit returns fault.RateLimited while too many such queries wait.
func (a *Accounts) Audit(ctx context.Context, p tenancy.Principal, q tenancy.AuditQuery) (
	out []tenancy.AuditEvent, more bool, err error) {
	const op = "tenancy.Audit"
	var in tenancy.Inputs
	in.Check(q.Page >= 0 && q.Page <= 10_000, "page", "must be from 0 to 10000")
	in.Check(q.Limit >= 1 && q.Limit <= tenancy.MaxAuditPage, "limit", "must be from 1 to 1000")
	q.Actor, q.Action = in.Text("actor", q.Actor, 320), in.Text("action", q.Action, 64)
	if err := in.Err(op); err != nil {
		return nil, false, err
	}
	leave, err := a.queryAudit(ctx, op, p.Org)
	if err != nil {
		return nil, false, err
	}
	defer leave()
	if !p.Role.Manages() {
		q.Actor = p.Person.String()
	}
	err = a.inOrg(ctx, op, p.Org, func(tx *tenancystore.OrgTx) error {
		out, err = tx.AuditEvents(ctx, q)
		return err
	})
	if len(out) > q.Limit {
		return out[:q.Limit], true, err
	}
	return out, false, err
}

// Record appends an entry to the audit log of the principal's organization for something that another part of the
// service did. It returns fault.Unavailable when the database cannot be reached; what was done stays done.
func (a *Accounts) Record(ctx context.Context, p tenancy.Principal, action tenancy.Action, subject string) error {
	return a.inOrg(ctx, "tenancy.Record", p.Org, func(tx *tenancystore.OrgTx) error {
		return tx.Audit(ctx, p.Event(action, subject), a.clock.Now())
	})
}

// AppendAudit appends an entry to the audit log of the principal's organization for something that another
// part of the service does. It runs as pg.Tenant in the transaction of what the entry records, and
// returns the error of Postgres.
func (a *Accounts) AppendAudit(
	ctx context.Context, q pg.Querier, p tenancy.Principal, action tenancy.Action, subject string,
) error {
	return tenancystore.Audit(ctx, q, p.Org, p.Event(action, subject), a.clock.Now())
}

// MailDisowned queues a mail for each administrator of an organization about a channel that was
// disconnected by the person who had granted access to its account.
func (a *Accounts) MailDisowned(ctx context.Context, org tenancy.OrgID, channel string) error {
	return a.inGate(ctx, "tenancy.MailDisowned", func(tx *tenancystore.GateTx) error {
		in, err := tx.Enter(ctx, org)
		if err != nil {
			return err
		}
		o, err := in.Organization(ctx)
		if err != nil {
			return err
		}
		tx, err = in.Leave(ctx)
		if err != nil {
			return err
		}
		return a.mailMembers(ctx, tx, mailChannelDisowned, notice{Org: org, Name: o.Name, Zone: o.Timezone, Channel: channel})
	})
}
