package organization

import (
	"context"
	"fmt"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/tenancy"
	"crier/tenancy/db"
	organizationstore "crier/tenancy/organization/store"
)

// creationWindow is the period that ORGANIZATIONS_PER_DAY refers to.
const creationWindow = 24 * time.Hour

// CheckCreations returns an error if a person may not create another organization. The caller must
// have locked the person. The error is Conflict if the person has created too many organizations,
// and RateLimited if too many were created within the last 24 hours. It is Quota if too many are on
// the default plan. Organizations created by other accounts with the same mailbox also count.
func (s *Organizations) CheckCreations(
	ctx context.Context, tx *db.GateTx, op string, person tenancy.PersonID,
) error {
	if err := organizationstore.LockMailbox(ctx, tx, person); err != nil {
		return err
	}
	created, err := organizationstore.CreatedOrganizations(ctx, tx, person, maxOrganizations)
	if err != nil {
		return err
	}
	if most := s.cfg.OrganizationsPerPerson; most > 0 && len(created) >= most {
		return fault.New(fault.Conflict, op, fmt.Sprintf("You have created %d organizations; one person may create %d: "+
			"delete one (it counts until it is purged) or ask the operator.", len(created), most))
	}
	if most := s.cfg.OrganizationsPerDay; most > 0 && len(created) >= most {
		if wait := created[most-1].At.Add(creationWindow).Sub(s.clock.Now()); wait > 0 {
			return &fault.Error{Kind: fault.RateLimited, Op: op, RetryAfter: wait,
				Message: fmt.Sprintf("One person may create %d organizations in 24 hours; wait before the next one.", most)}
		}
	}
	return s.checkDefaultPlan(op, created)
}

// checkDefaultPlan returns Quota if too many of the organizations that a person created are on the
// default plan. Without this check, a person could multiply the plan's limits by creating more
// organizations.
func (s *Organizations) checkDefaultPlan(op string, created []organizationstore.Created) error {
	most := s.cfg.DefaultPlanOrganizations
	if s.plans == nil || most == 0 {
		return nil
	}
	orgs := make([]tenancy.OrgID, len(created))
	for i, c := range created {
		orgs[i] = c.Org
	}
	plan, n := s.plans.OnDefault(orgs)
	if n < most {
		return nil
	}
	return &fault.Error{
		Kind: fault.Quota, Op: op,
		Limit: &fault.Limit{Name: string(tenancy.LimitOrganizations), Current: n, Allowed: most},
		Message: fmt.Sprintf("You have created %d organizations with the plan %s; one person may have %d. "+
			"Choose a larger plan for one, or delete one (it counts until it is purged).", n, plan, most),
	}
}

// CreateOrganization creates an organization that the principal's person owns. The name must have 3
// to 128 characters. CreateOrganization returns fault.Conflict if the person belongs to too many
// organizations. It also returns errors from CheckCreations.
func (s *Organizations) CreateOrganization(ctx context.Context, p tenancy.Principal, name string) (
	out tenancy.Organization, err error) {
	const op = "tenancy.CreateOrganization"
	var in tenancy.Inputs
	name = in.Name("name", name, 3, 128)
	if err := in.Err(op); err != nil {
		return out, err
	}
	err = s.db.InPerson(ctx, op, p, func(tx *db.GateTx, _ tenancy.Person) error {
		if err := db.CheckMemberships(ctx, tx, op, p.Person); err != nil {
			return err
		}
		if err := s.CheckCreations(ctx, tx, op, p.Person); err != nil {
			return err
		}
		made, err := s.MakeOrganization(ctx, tx, p, p.Person, name)
		out = tenancy.Organization{ID: made, Name: name}
		return err
	})
	return out, err
}

// MakeOrganization creates an organization that the principal's person owns. The organization
// counts toward creator's limits. creator is zero if the operator creates the organization.
func (s *Organizations) MakeOrganization(
	ctx context.Context, tx *db.GateTx, by tenancy.Principal, creator tenancy.PersonID, name string,
) (tenancy.OrgID, error) {
	o := tenancy.Organization{
		ID: id.New[tenancy.OrgTag](), Name: name, Timezone: "UTC", CreatedAt: s.clock.Now(), Creator: creator,
	}
	org, err := tx.Enter(ctx, o.ID)
	if err != nil {
		return o.ID, err
	}
	if err := organizationstore.CreateOrganization(ctx, org, o, by.Person); err != nil {
		return o.ID, err
	}
	if err := db.Audit(ctx, org, by.Event(tenancy.ActionOrganizationCreated, o.Name), o.CreatedAt); err != nil {
		return o.ID, err
	}
	_, err = org.Leave(ctx)
	return o.ID, err
}
