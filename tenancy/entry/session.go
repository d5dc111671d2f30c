package entry

import (
	"context"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/credential"
	"crier/tenancy/db"
	"crier/tenancy/notice"
)

const (
	// maxSignIns is how many times a person can sign in within signInWindow. The number is limited
	// because each sign-in creates a session and audit entries.
	maxSignIns   = 100
	signInWindow = time.Hour
	// maxDeviceMails is the number of sign-ins within signInWindow after which the person receives
	// no more emails about new browsers.
	maxDeviceMails = 10
)

// StartSession creates a session. It remembers a browser that is new to the person and emails the
// person about it, but sends no email about the person's first browser. StartSession returns
// fault.RateLimited if the person has signed in too often. Only successful sign-ins count, so
// nobody else can exhaust the limit.
func (s *Entry) StartSession(ctx context.Context, tx *db.GateTx, op string, person tenancy.Person,
	from tenancy.Source) (out tenancy.SignIn, err error) {
	session, hash, err := credential.New(op)
	if err != nil {
		return out, err
	}
	now := s.clock.Now()
	n, since, err := countSignIn(ctx, tx, person.ID, now, signInWindow)
	if err != nil {
		return out, err
	}
	if n > maxSignIns {
		return out, &fault.Error{
			Kind: fault.RateLimited, Op: op, Message: "Too many sign-ins to this account; wait before the next one.",
			RetryAfter: since.Add(signInWindow).Sub(now),
		}
	}
	err = createSession(ctx, tx, newSession{
		ID: id.New[tenancy.SessionTag](), Person: person.ID, Hash: hash, CreatedAt: now,
		Expires: now.Add(tenancy.SessionAbsolute), From: from,
	})
	if err != nil {
		return out, err
	}
	out.Session = session
	out.Device, err = s.rememberDevice(ctx, tx, op, person, from, n <= maxDeviceMails)
	if err != nil {
		return out, err
	}
	return out, db.AuditPerson(ctx, tx, person.ID, db.PersonEvent(person, from, tenancy.ActionSignedIn), now)
}

// rememberDevice remembers a browser that is new to the person and returns a device token for it.
// If the browser is already known, it returns "". If inform is set, it emails the person about a
// new browser, unless that browser is the person's first.
func (s *Entry) rememberDevice(ctx context.Context, tx *db.GateTx, op string, person tenancy.Person,
	from tenancy.Source, inform bool) (string, error) {
	now := s.clock.Now()
	if from.Device != "" {
		known, err := seeDevice(ctx, tx, person.ID, secret.HashToken(from.Device), now)
		if err != nil || known {
			return "", err
		}
	}
	device, hash, err := credential.New(op)
	if err != nil {
		return "", err
	}
	others, err := addDevice(ctx, tx, person.ID, hash, now)
	if err != nil || !others || !inform {
		return device, err
	}
	return device, s.notices.Notify(ctx, tx, notice.NewDevice, person.Email, notice.Notice{
		Address: from.Client, Agent: from.Agent,
	})
}
