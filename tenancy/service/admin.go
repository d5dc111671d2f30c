package service

import (
	"context"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

// operator is how the operator of the instance is called in audit logs and events.
const operator = "the operator"

// NewOwner is the input of CreateOwner. Email is stored in lower case, without spaces around it.
type NewOwner struct {
	Email, Name, Password string
	// Organization is the name of the organization, of 1 to 128 characters.
	Organization string
	// Instance makes the person an administrator of the instance.
	Instance bool
}

// CreateOwner creates a person and an organization that the person owns, in one transaction, and returns the principal.
// An address that is in use is fault.Conflict. A password that is refused as in a registration, and a text that breaks a
// rule, are fault.Invalid.
func (a *Accounts) CreateOwner(ctx context.Context, n NewOwner) (tenancy.Principal, error) {
	const op = "tenancy.CreateOwner"
	var in tenancy.Inputs
	email, name := in.Email("email", n.Email), in.Name("name", n.Name, 0, 128)
	organization := in.Name("organization", n.Organization, 1, 128)
	if err := in.Err(op); err != nil {
		return tenancy.Principal{}, err
	}
	if err := checkPassword(op, "password", n.Password); err != nil {
		return tenancy.Principal{}, err
	}
	hash, err := a.hashPassword(ctx, "", n.Password) // the operator has no site
	if err != nil {
		return tenancy.Principal{}, err
	}
	person := tenancy.Person{
		ID: id.New[tenancy.PersonTag](), Email: email, Name: name, PasswordHash: hash, Instance: n.Instance,
		CreatedAt: a.clock.Now(),
	}
	p := tenancy.Principal{Person: person.ID, Role: tenancy.RoleSuperAdmin, Via: tenancy.ViaInstance, Name: email}
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		if err := tx.CreatePerson(ctx, person); err != nil {
			return err
		}
		if p.Org, err = a.makeOrganization(ctx, tx, p, tenancy.PersonID{}, organization); err != nil {
			return err
		}
		return a.addInstanceEvent(ctx, tx, tenancy.ActionPersonCreated, email)
	})
	return p, accountFault(op, err)
}

func (a *Accounts) addInstanceEvent(ctx context.Context, tx *tenancystore.GateTx, action tenancy.Action,
	subject string) error {
	return tx.AddInstanceEvent(ctx, tenancy.InstanceEvent{
		At: a.clock.Now(), Actor: operator, Action: action, Subject: subject,
	})
}

// ofPerson runs fn in a transaction that has locked the person with an address, or returns fault.NotFound.
func (a *Accounts) ofPerson(ctx context.Context, op, email string,
	fn func(tx *tenancystore.GateTx, person tenancy.Person) error) error {
	clean, _ := tenancy.CleanEmail(email)
	err := a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		found, err := tx.PersonByEmail(ctx, clean)
		if err != nil {
			return err
		}
		person, err := tx.LockPerson(ctx, found.ID)
		if err != nil {
			return err
		}
		return fn(tx, person)
	})
	if pg.IsNoRows(err) {
		return fault.New(fault.NotFound, op, "There is nobody with this address.")
	}
	return err
}

// SetPasswordOf replaces the password of the person with an address by a random one, which it returns, and ends all
// sessions and all sign-ins by providers of the person. It is for the operator. An address without an account is
// fault.NotFound.
func (a *Accounts) SetPasswordOf(ctx context.Context, email string) (string, error) {
	const op = "tenancy.SetPasswordOf"
	password, err := secret.Token("", 20)
	if err != nil {
		return "", fault.Wrap(fault.Internal, op, "", err)
	}
	hash, err := a.hashPassword(ctx, "", password)
	if err != nil {
		return "", err
	}
	return password, a.ofPerson(ctx, op, email, func(tx *tenancystore.GateTx, person tenancy.Person) error {
		if err := tx.SetPassword(ctx, person.ID, hash); err != nil {
			return err
		}
		if _, err := tx.EndSessions(ctx, person.ID, tenancy.SessionID{}, ""); err != nil {
			return err
		}
		if err := tx.DeleteIdentities(ctx, person.ID); err != nil {
			return err
		}
		event := instanceEvent(operator, tenancy.ActionPasswordReset, person.Email)
		if err := tx.AuditPerson(ctx, person.ID, event, a.clock.Now()); err != nil {
			return err
		}
		if err := a.notify(ctx, tx, mailPasswordChanged, person.Email, notice{Address: operator}); err != nil {
			return err
		}
		return a.addInstanceEvent(ctx, tx, tenancy.ActionPasswordSet, person.Email)
	})
}

// DisableMFAOf deletes the second factor of the person with an address and ends all sessions of the person. It is for
// the operator. An address without an account is fault.NotFound.
func (a *Accounts) DisableMFAOf(ctx context.Context, email string) error {
	const op = "tenancy.DisableMFAOf"
	return a.ofPerson(ctx, op, email, func(tx *tenancystore.GateTx, person tenancy.Person) error {
		if err := tx.DeleteFactor(ctx, person.ID); err != nil {
			return err
		}
		if _, err := tx.EndSessions(ctx, person.ID, tenancy.SessionID{}, ""); err != nil {
			return err
		}
		event := instanceEvent(operator, tenancy.ActionMFAOff, person.Email)
		if err := tx.AuditPerson(ctx, person.ID, event, a.clock.Now()); err != nil {
			return err
		}
		if err := a.notify(ctx, tx, mailMFAOff, person.Email, notice{Address: operator}); err != nil {
			return err
		}
		return a.addInstanceEvent(ctx, tx, tenancy.ActionMFAReset, person.Email)
	})
}

// SetInstanceAdmin makes the person with an address an administrator of the instance, or ends that, and with it what
// the person's sessions act as. It is for the operator. An address without an account is fault.NotFound.
func (a *Accounts) SetInstanceAdmin(ctx context.Context, email string, instance bool) error {
	action := tenancy.ActionInstanceAdminEnded
	if instance {
		action = tenancy.ActionInstanceAdmin
	}
	return a.ofPerson(ctx, "tenancy.SetInstanceAdmin", email,
		func(tx *tenancystore.GateTx, person tenancy.Person) error {
			if err := tx.SetInstance(ctx, person.ID, instance); err != nil {
				return err
			}
			if !instance {
				if err := a.endActingOf(ctx, tx, person); err != nil {
					return err
				}
			}
			return a.addInstanceEvent(ctx, tx, action, person.Email)
		})
}

// AllOrganizations returns at most limit organizations of the instance after an id, by id. It is for the operator.
func (a *Accounts) AllOrganizations(ctx context.Context, after tenancy.OrgID, limit int) (
	out []tenancy.Organization, err error) {
	const op = "tenancy.AllOrganizations"
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		out, err = tx.ListOrganizations(ctx, after, limit)
		return err
	})
	return out, err
}

// Events returns the newest events of the instance, at most limit. It is for the operator.
func (a *Accounts) Events(ctx context.Context, limit int) (out []tenancy.InstanceEvent, err error) {
	const op = "tenancy.Events"
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		out, err = tx.InstanceEvents(ctx, limit)
		return err
	})
	return out, err
}

// Suspend takes the members and keys of an organization their access and stops its publishing, or undoes that. Posts
// that fell due meanwhile are handled like those of a pause. It is for the operator, and may be repeated. An id of no
// organization is fault.NotFound.
func (a *Accounts) Suspend(ctx context.Context, org string, suspended bool) error {
	const op = "tenancy.Suspend"
	parsed, _ := id.Parse[tenancy.OrgTag](org)
	now := a.clock.Now()
	at, event, logged := &now, tenancy.ActionOrgSuspended, tenancy.ActionSuspended
	if !suspended {
		at, event, logged = nil, tenancy.ActionOrgResumed, tenancy.ActionResumed
	}
	err := a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		if err := tx.SetSuspended(ctx, parsed, at); err != nil {
			return err
		}
		if err := tx.AuditOrg(ctx, parsed, instanceEvent(operator, logged, ""), now); err != nil {
			return err
		}
		return a.addInstanceEvent(ctx, tx, event, org)
	})
	if pg.IsNoRows(err) {
		return fault.New(fault.NotFound, op, "There is no such organization.")
	}
	if err != nil {
		return err
	}
	a.keys.forgetOrgs(parsed)
	return a.syncPublishing(ctx, parsed)
}
