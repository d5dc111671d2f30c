package proof

import (
	"context"
	"strings"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
)

// Prove verifies that the request comes from the principal's person, either with the password or,
// if the person has none, with a recent sign-in. If the person has a second factor, Prove also
// checks a code. No code is needed if the session began in the last ten minutes and the second
// factor was verified at sign-in.
//
// Prove returns the person. The caller must lock and confirm the person again before acting.
//
// Prove returns Invalid if the proof is wrong, and Invalid with RemedyCode if the code is missing.
// It returns RateLimited after too many wrong codes or while too many passwords are being hashed.
// It returns Unauthenticated if the session has ended, and Forbidden if the principal is
// impersonating somebody.
func (s *Proofs) Prove(ctx context.Context, op string, p tenancy.Principal, proof tenancy.Proof) (
	person tenancy.Person, err error) {
	person, signIn, err := s.ProvePassword(ctx, op, p, proof.Password)
	if err != nil {
		return person, err
	}
	return person, s.proveFactor(ctx, op, p, signIn, proof.Code)
}

// ProveLately is like Prove, but accepts a sign-in within the last ten minutes instead of the
// password. If the person has a second factor, ProveLately checks it in the same way as Prove. The
// operator needs no proof.
func (s *Proofs) ProveLately(ctx context.Context, op string, p tenancy.Principal, proof tenancy.Proof) error {
	if p.Via == tenancy.ViaInstance { // the operator has no session
		return nil
	}
	if err := db.RejectImpersonator(op, p); err != nil {
		return err
	}
	_, signIn, err := s.proofOf(ctx, op, p)
	if err != nil {
		return err
	}
	if s.isRecent(signIn) {
		return s.proveFactor(ctx, op, p, signIn, proof.Code)
	}
	if proof.Password == "" {
		return &fault.Error{Kind: fault.Invalid, Op: op, Message: "Confirm that it is you.", Fields: []fault.Field{
			{Name: "password", Message: "is required, because you last signed in more than ten minutes ago"}}}
	}
	_, err = s.Prove(ctx, op, p, proof)
	return err
}

// proofOf returns the principal's person and what was verified when the session began.
func (s *Proofs) proofOf(ctx context.Context, op string, p tenancy.Principal) (
	person tenancy.Person, signIn SessionProof, err error) {
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		if signIn, err = ReadSignIn(ctx, tx, p.Session); err != nil {
			return err
		}
		person, err = db.ReadPerson(ctx, tx, p.Person)
		return err
	})
	if pg.IsNoRows(err) { // the session has ended since the request began
		err = fault.New(fault.Unauthenticated, op, "Sign in first.")
	}
	return person, signIn, err
}

func (s *Proofs) isRecent(signIn SessionProof) bool {
	return s.clock.Now().Sub(signIn.CreatedAt) < tenancy.RecentSignIn
}

// ProvePassword checks the password part of a proof; see Prove.
func (s *Proofs) ProvePassword(ctx context.Context, op string, p tenancy.Principal, password string) (
	person tenancy.Person, signIn SessionProof, err error) {
	if err := db.RejectImpersonator(op, p); err != nil {
		return person, signIn, err
	}
	person, signIn, err = s.proofOf(ctx, op, p)
	if err != nil {
		return person, signIn, err
	}
	if person.PasswordHash == "" {
		if !s.isRecent(signIn) {
			err = &fault.Error{Kind: fault.Invalid, Op: op, Message: "Sign in again first.", Fields: []fault.Field{
				{Name: "session", Message: "must be at most ten minutes old, because you have no password"}}}
		}
		return person, signIn, err
	}
	ok, err := s.Matches(ctx, p.From.Site, password, person.PasswordHash)
	if err == nil && !ok {
		err = fault.New(fault.Invalid, op, "The password is wrong.")
	}
	return person, signIn, err
}

// proveFactor checks the second-factor part of a proof; see Prove. The code may be a recovery code.
// Each code works only once.
func (s *Proofs) proveFactor(ctx context.Context, op string, p tenancy.Principal, signIn SessionProof,
	code string) error {
	if !signIn.HasFactor || signIn.ByFactor && s.isRecent(signIn) {
		return nil
	}
	if strings.TrimSpace(code) == "" {
		return &fault.Error{Kind: fault.Invalid, Op: op, Message: "Your second factor is required.",
			Remedy: fault.RemedyCode, Fields: []fault.Field{{Name: "code", Message: "from your second factor is required"}}}
	}
	code, recovery := SplitCode(code)
	return s.WithCode(ctx, op, p, code, recovery, func(*db.GateTx, tenancy.Person) error { return nil })
}
