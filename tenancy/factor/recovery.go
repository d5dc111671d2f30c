package factor

import (
	"context"

	"crier/platform/fault"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/db"
	factorstore "crier/tenancy/factor/store"
	"crier/tenancy/notice"
	"crier/tenancy/proof"
)

const recoveryCodes = 10

// newRecoveryCodes replaces a person's recovery codes and returns the new ones.
func (s *Factors) newRecoveryCodes(ctx context.Context, tx *db.GateTx, op string, person tenancy.PersonID) (
	[]string, error) {
	codes, hashes := make([]string, recoveryCodes), make([][]byte, recoveryCodes)
	for i := range codes {
		code, err := secret.Token("", proof.RecoveryLength)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, op, "", err)
		}
		codes[i], hashes[i] = code, secret.HashToken(code)
	}
	return codes, factorstore.ReplaceRecoveryCodes(ctx, tx, person, hashes)
}

// ReplaceRecoveryCodes replaces all of the person's recovery codes and returns the new ones. code
// must be a code from the person's second factor.
func (s *Factors) ReplaceRecoveryCodes(
	ctx context.Context, p tenancy.Principal, code string,
) (codes []string, err error) {
	const op = "tenancy.ReplaceRecoveryCodes"
	if err := db.RejectImpersonator(op, p); err != nil {
		return nil, err
	}
	err = s.proofs.WithCode(ctx, op, p, code, "", func(tx *db.GateTx, person tenancy.Person) error {
		if codes, err = s.newRecoveryCodes(ctx, tx, op, p.Person); err != nil {
			return err
		}
		if err := db.AuditPerson(ctx, tx, p.Person, p.Event(tenancy.ActionRecoveryCodes, ""), s.clock.Now()); err != nil {
			return err
		}
		return s.notices.Notify(ctx, tx, notice.RecoveryCodes, person.Email, notice.Notice{Address: p.From.Client})
	})
	return codes, err
}
