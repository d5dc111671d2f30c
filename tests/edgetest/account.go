package edgetest

import (
	"context"
	"fmt"
	"strings"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/tenancy"
)

// Ada is the e-mail address of the person who owns all sessions. Her password is "right".
const Ada = "ada@example.org"

// NewToken is what the fakes return where the service would create a secret.
const NewToken = "made-token"

// The ids of Ada, her organization and what belongs to them.
var (
	PersonID  = id.New[tenancy.PersonTag]()
	OrgID     = id.New[tenancy.OrgTag]()
	SessionID = id.New[tenancy.SessionTag]()
	KeyID     = id.New[tenancy.KeyTag]()

	otherSessionID = id.New[tenancy.SessionTag]()
	impersonatorID = id.New[tenancy.PersonTag]()
	inviteID       = id.New[tenancy.InvitationTag]()
	auditID        = id.New[tenancy.AuditTag]()
)

// Membership is the id of Ada's membership in her organization, with which she can be impersonated.
var Membership = tenancy.FormatMembership(OrgID, PersonID)

// accounts implements the account ports. It records every call except Session, Authenticate and
// Logout.
type accounts struct{ *World }

// record records a call as its name and arguments. It returns the error of the world, or a
// database's error if an argument is text that a database cannot store.
func (a accounts) record(name string, args ...any) error {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	for _, arg := range args {
		if text, ok := arg.(string); ok {
			if err := sql(text); err != nil {
				return err
			}
		}
	}
	a.calls = append(a.calls, strings.TrimSpace(fmt.Sprintln(append([]any{name}, args...)...)))
	return a.Err
}

// signed records a call that has a source, and returns the world's result of a sign-in.
func (a accounts) signed(name string, from tenancy.Source, args ...any) (tenancy.SignIn, error) {
	err := a.record(name, args...)
	a.Mu.Lock()
	defer a.Mu.Unlock()
	a.From = from
	if err != nil {
		return tenancy.SignIn{}, err
	}
	return a.signIn, nil
}

// adaPerson returns Ada. Her picture is on another host.
func adaPerson() tenancy.Person {
	return tenancy.Person{
		ID: PersonID, Email: Ada, Name: "Ada", Bio: "Counts.", Verified: true, CreatedAt: Day,
		Picture: tenancy.Picture{ID: "kept", Path: "http://elsewhere.test/kept.png"},
	}
}

// theOrganization returns the organization OrgID.
func theOrganization() tenancy.Organization {
	return tenancy.Organization{
		ID: OrgID, Name: "Acme", Description: "Makes things.", Timezone: "Europe/Vienna", CreatedAt: Day,
	}
}

// prove fails like a use case if the password is not "right".
func prove(password string) error {
	if password != "right" {
		return fault.New(fault.Invalid, "fake", "The password is wrong.")
	}
	return nil
}

func (a accounts) Senders(_ context.Context, p tenancy.Principal) ([]string, error) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	out := []string{"creator " + a.Creator.String()}
	if !p.Person.IsZero() {
		out = append(out, "person "+p.Person.String())
	}
	return out, nil
}

func (a accounts) RecordActed(context.Context, tenancy.Principal, string) error { return a.note() }
