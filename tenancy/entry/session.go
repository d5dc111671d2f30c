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
	// maxSignIns is how many times a person can sign in within signInWindow. Each sign-in creates a
	// session and audit entries.
	maxSignIns   = 100
	signInWindow = time.Hour
	// maxDeviceMails is how many emails about new browsers a person receives within signInWindow.
	maxDeviceMails = 10
)

// StartSession creates a session and, if the browser is unknown, a device. It emails the person
// about a new browser, unless it is the person's first. It returns fault.RateLimited after too many
// sign-ins by the person. Only successful sign-ins count, so nobody else can exhaust the limit.
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

// rememberDevice returns a token for a browser that is new to the person, or "" for a known one. If
// inform is set, it emails the person about a new browser, unless it is the person's first.
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
