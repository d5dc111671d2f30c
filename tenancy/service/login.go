package service

import (
	"context"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

// Login checks an address and a password and returns a new session, or the next step of the sign-in. A wrong password
// and an unknown address are fault.Invalid with the same message after the same work. Sites, the networks of clients,
// take turns in the hashing of passwords, so that many log-ins of one site hardly delay those of others. Login returns
// fault.RateLimited when too many log-ins of the site are waiting, or after waiting for hashWait.
func (a *Accounts) Login(ctx context.Context, email, password string, from tenancy.Source) (tenancy.SignIn, error) {
	const op = "tenancy.Login"
	var person tenancy.Person
	clean, valid := tenancy.CleanEmail(email)
	if valid {
		found, err := a.store.PersonByEmail(ctx, clean)
		if err != nil && !pg.IsNoRows(err) {
			return tenancy.SignIn{}, pg.Fault(op, err)
		}
		person = found
	}
	ok, err := a.matches(ctx, from.Site, password, person.PasswordHash)
	if err != nil {
		return tenancy.SignIn{}, err
	}
	if !ok {
		return tenancy.SignIn{}, wrongPair(op)
	}
	return a.signIn(ctx, op, person, from)
}

func wrongPair(op string) error {
	return fault.New(fault.Invalid, op, "Invalid user name or password.")
}

// signIn begins a session of a person whose password was compared, or the step that is still needed. A password that
// was replaced since the comparison is a wrong one, so that a reset leaves no session of the old password behind.
// An account whose deletion cannot be undone any more is answered like an unknown address.
func (a *Accounts) signIn(ctx context.Context, op string, compared tenancy.Person, from tenancy.Source) (
	out tenancy.SignIn, err error) {
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		person, err := tx.LockPerson(ctx, compared.ID)
		if pg.IsNoRows(err) || err == nil && (person.PasswordHash != compared.PasswordHash || a.isGone(person)) {
			return wrongPair(op)
		}
		if err != nil {
			return err
		}
		out, err = a.nextStep(ctx, tx, op, person, from)
		return err
	})
	return out, err
}

// nextStep returns the step that the sign-in of a locked person needs after the first factor, or begins the session.
func (a *Accounts) nextStep(ctx context.Context, tx *tenancystore.GateTx, op string, person tenancy.Person,
	from tenancy.Source) (tenancy.SignIn, error) {
	factor, err := tx.LockFactor(ctx, person.ID)
	if err != nil && !pg.IsNoRows(err) {
		return tenancy.SignIn{}, err
	}
	if err == nil && factor.ConfirmedAt != nil {
		return a.beginStep(ctx, tx, op, person, tenancy.StepMFA)
	}
	required, err := tx.RequiresMFA(ctx, person.ID)
	if err != nil {
		return tenancy.SignIn{}, err
	}
	if required {
		return a.beginStep(ctx, tx, op, person, tenancy.StepEnroll)
	}
	return a.lastStep(ctx, tx, op, person, from)
}

// lastStep begins the session of a person whose factors are proved. An account that is to be deleted needs a
// confirmation first.
func (a *Accounts) lastStep(ctx context.Context, tx *tenancystore.GateTx, op string, person tenancy.Person,
	from tenancy.Source) (tenancy.SignIn, error) {
	if person.DeletedAt != nil {
		return a.beginStep(ctx, tx, op, person, tenancy.StepRestore)
	}
	return a.startSession(ctx, tx, op, person, from)
}

func (a *Accounts) beginStep(ctx context.Context, tx *tenancystore.GateTx, op string, person tenancy.Person,
	step tenancy.Step) (tenancy.SignIn, error) {
	t, hash, err := token(op)
	if err != nil {
		return tenancy.SignIn{}, err
	}
	err = tx.CreateStep(ctx, hash, person.ID, step, a.clock.Now().Add(tenancy.SignInStepLife))
	out := tenancy.SignIn{Step: step, Token: t}
	if person.DeletedAt != nil {
		out.Until = person.DeletedAt.Add(a.cfg.DeleteGrace)
	}
	return out, err
}

const (
	// maxSignIns is how many sign-ins of a person succeed in signInWindow. Each makes a session and entries in audit logs.
	maxSignIns   = 100
	signInWindow = time.Hour
	// maxDeviceMails is how many mails about new browsers a person gets in signInWindow.
	maxDeviceMails = 10
)

// startSession creates a session and, in a browser that is not known yet, a device. A mail informs the person of a sign-in
// in a new browser, but not of the first one. It returns fault.RateLimited after too many sign-ins of the person: all of
// them had the right password, so that nobody else can cause it.
func (a *Accounts) startSession(ctx context.Context, tx *tenancystore.GateTx, op string, person tenancy.Person,
	from tenancy.Source) (out tenancy.SignIn, err error) {
	session, hash, err := token(op)
	if err != nil {
		return out, err
	}
	now := a.clock.Now()
	n, since, err := tx.CountSignIn(ctx, person.ID, now, signInWindow)
	if err != nil {
		return out, err
	}
	if n > maxSignIns {
		return out, &fault.Error{
			Kind: fault.RateLimited, Op: op, Message: "Too many sign-ins of this account; wait before the next one.",
			RetryAfter: since.Add(signInWindow).Sub(now),
		}
	}
	err = tx.CreateSession(ctx, tenancystore.NewSession{
		ID: id.New[tenancy.SessionTag](), Person: person.ID, Hash: hash, CreatedAt: now,
		Expires: now.Add(tenancy.SessionAbsolute), From: from,
	})
	if err != nil {
		return out, err
	}
	out.Session = session
	out.Device, err = a.rememberDevice(ctx, tx, op, person, from, n <= maxDeviceMails)
	if err != nil {
		return out, err
	}
	return out, tx.AuditPerson(ctx, person.ID, personEvent(person, from, tenancy.ActionSignedIn), now)
}

// rememberDevice returns the token of a browser that is new for the person, and "" for a known one. With inform a mail says
// so.
func (a *Accounts) rememberDevice(ctx context.Context, tx *tenancystore.GateTx, op string, person tenancy.Person,
	from tenancy.Source, inform bool) (string, error) {
	now := a.clock.Now()
	if from.Device != "" {
		known, err := tx.SeeDevice(ctx, person.ID, secret.HashToken(from.Device), now)
		if err != nil || known {
			return "", err
		}
	}
	device, hash, err := token(op)
	if err != nil {
		return "", err
	}
	others, err := tx.AddDevice(ctx, person.ID, hash, now)
	if err != nil || !others || !inform {
		return device, err
	}
	return device, a.notify(ctx, tx, mailNewDevice, person.Email, notice{Address: from.Client, Agent: from.Agent})
}

// KnownDevice returns whether the person with the address has signed in in the browser of from before.
func (a *Accounts) KnownDevice(ctx context.Context, email string, from tenancy.Source) (bool, error) {
	clean, ok := tenancy.CleanEmail(email)
	if !ok || from.Device == "" {
		return false, nil
	}
	known, err := a.store.IsDeviceOf(ctx, secret.HashToken(from.Device), clean, a.clock.Now())
	return known, pg.Fault("tenancy.KnownDevice", err)
}
