package factor

import (
	"bytes"
	"cmp"
	"context"
	"strings"

	"github.com/pquerna/otp/totp"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/db"
	"crier/tenancy/entry"
	factorstore "crier/tenancy/factor/store"
	"crier/tenancy/notice"
	"crier/tenancy/proof"
)

// BeginMFA begins the enrollment of a second factor and returns the factor's secret. The factor
// takes effect once ConfirmMFA has accepted a code from it. If BeginMFA is called again in the same
// session, it returns the same secret. It returns fault.Conflict if the person already has a
// confirmed factor.
func (s *Factors) BeginMFA(ctx context.Context, p tenancy.Principal, proof tenancy.Proof) (tenancy.Secret, error) {
	const op = "tenancy.BeginMFA"
	_, _, err := s.proofs.ProvePassword(ctx, op, p, proof.Password) // there is no second factor yet
	if err != nil {
		return tenancy.Secret{}, err
	}
	var out tenancy.Secret
	err = s.db.InPerson(ctx, op, p, func(tx *db.GateTx, person tenancy.Person) error {
		out, err = s.BeginFactor(ctx, tx, op, person, secret.HashToken(p.Session.String()))
		return err
	})
	return out, err
}

// BeginFactor begins the enrollment of a second factor and returns the factor's secret. by is the
// hash of the session or sign-in that begins the enrollment. If BeginFactor is called again with
// the same hash, it returns the same secret.
func (s *Factors) BeginFactor(
	ctx context.Context, tx *db.GateTx, op string, person tenancy.Person, by []byte,
) (tenancy.Secret, error) {
	key, err := totp.Generate(totp.GenerateOpts{
		Issuer: "Crier " + s.host(), AccountName: person.Email, Period: proof.CodePeriod, SecretSize: 20,
	})
	if err != nil {
		return tenancy.Secret{}, fault.Wrap(fault.Internal, op, "", err)
	}
	sealed, err := s.keyring.Seal([]byte(key.Secret()), person.ID.String())
	if err != nil {
		return tenancy.Secret{}, err
	}
	stored, err := factorstore.BeginFactor(ctx, tx, person.ID, sealed, s.clock.Now(), by)
	if pg.IsNoRows(err) {
		return tenancy.Secret{}, fault.New(fault.Conflict, op, "A second factor is already enabled; disable it first.")
	}
	if err != nil {
		return tenancy.Secret{}, err
	}
	if bytes.Equal(stored.Secret, sealed) {
		return tenancy.Secret{Text: key.Secret(), URL: key.URL()}, nil
	}
	begun, err := s.keyring.Open(stored.Secret, person.ID.String())
	if err != nil {
		return tenancy.Secret{}, err
	}
	link := strings.Replace(key.URL(), "secret="+key.Secret(), "secret="+string(begun), 1)
	return tenancy.Secret{Text: string(begun), URL: link}, nil
}

// ConfirmMFA enables the second factor from BeginMFA and returns the recovery codes. code must be a
// valid code from that factor.
func (s *Factors) ConfirmMFA(ctx context.Context, p tenancy.Principal, code string) (codes []string, err error) {
	const op = "tenancy.ConfirmMFA"
	if err := db.RejectImpersonator(op, p); err != nil {
		return nil, err
	}
	var refusal error
	err = s.db.InPerson(ctx, op, p, func(tx *db.GateTx, _ tenancy.Person) error {
		codes, refusal, err = s.ConfirmFactor(ctx, tx, op, p.Person, code, p.From)
		if err != nil || refusal != nil {
			return err
		}
		return entry.SetSessionByFactor(ctx, tx, p.Session)
	})
	return codes, cmp.Or(err, proof.OfInput(op, refusal))
}

// ConfirmFactor enables a second factor and returns the recovery codes. If the code is rejected,
// refusal is the reason and err is nil. The caller must then still commit the transaction, so that
// the attempt is counted.
func (s *Factors) ConfirmFactor(ctx context.Context, tx *db.GateTx, op string, id tenancy.PersonID,
	code string, from tenancy.Source) (codes []string, refusal, err error) {
	f, err := proof.LockFactor(ctx, tx, id)
	if pg.IsNoRows(err) || err == nil && f.ConfirmedAt != nil {
		return nil, fault.New(fault.Conflict, op, "Start enabling a second factor first."), nil
	}
	if err != nil {
		return nil, nil, err
	}
	if refusal, err := s.proofs.CheckCode(ctx, tx, op, id, f, code); err != nil || refusal != nil {
		return nil, refusal, err
	}
	now := s.clock.Now()
	if err := factorstore.ConfirmFactor(ctx, tx, id, now); err != nil {
		return nil, nil, err
	}
	if codes, err = s.newRecoveryCodes(ctx, tx, op, id); err != nil {
		return nil, nil, err
	}
	person, err := db.ReadPerson(ctx, tx, id)
	if err != nil {
		return nil, nil, err
	}
	err = db.AuditPerson(ctx, tx, id, db.PersonEvent(person, from, tenancy.ActionMFAOn), now)
	if err != nil {
		return nil, nil, err
	}
	return codes, nil, s.notices.Notify(ctx, tx, notice.MFAOn, person.Email, notice.Notice{Address: from.Client})
}
