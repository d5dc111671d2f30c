package registration

import (
	"context"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
)

const (
	// maxSignedLife is the maximum time between a signed request's iat and exp.
	maxSignedLife = 5 * time.Minute
	// clockSkew is how far the signer's clock may be ahead of ours.
	clockSkew = 30 * time.Second
	// maxSigned is the maximum length of a signed request, in bytes.
	maxSigned = 8 << 10
)

// enterpriseUser is the content of a signed request.
type enterpriseUser struct {
	// UserID is the person's id at the company. It is not used.
	UserID any    `json:"id"`
	Name   string `json:"name"`
	Email  string `json:"email"`
	// Organization is the name of the company's product. It becomes the organization's name here.
	Organization string `json:"saasName"`
}

// CreateEnterpriseUser creates a person without a password, an organization and the organization's
// first API key. It returns the organization's id and the full key. signed must be a JWT that the
// company has signed with HS256 and ENTERPRISE_SECRET. The JWT must contain iat, an exp at most
// five minutes later, and a jti that no other request uses.
//
// CreateEnterpriseUser returns fault.NotFound if the instance has no secret, and fault.Invalid if
// the signature, age or content of the request is invalid. It returns fault.Conflict if the request
// was used before or if the address is in use.
func (s *Registrations) CreateEnterpriseUser(ctx context.Context, signed string, from tenancy.Source) (
	org tenancy.OrgID, key string, err error) {
	const op = "tenancy.CreateEnterpriseUser"
	user, claims, err := s.openSigned(op, signed)
	if err != nil {
		return org, "", err
	}
	var in tenancy.Inputs
	email, name := in.Email("email", user.Email), in.Name("name", user.Name, 0, 128)
	company := in.Name("saasName", user.Organization, 1, 128)
	if err := in.Err(op); err != nil {
		return org, "", err
	}
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		err := db.UseRequest(ctx, tx, claims.ID, claims.Expiry.Time().Add(clockSkew))
		if pg.IsNoRows(err) {
			return fault.New(fault.Conflict, op, "This request has already been used.")
		}
		if err != nil {
			return err
		}
		person := tenancy.Person{ID: id.New[tenancy.PersonTag](), Email: email, Name: name, CreatedAt: s.clock.Now()}
		if err := db.CreatePerson(ctx, tx, person); err != nil {
			return err
		}
		p := tenancy.Principal{Person: person.ID, Name: person.Email, Via: tenancy.ViaInstance, From: from}
		if org, err = s.organizations.MakeOrganization(ctx, tx, p, tenancy.PersonID{}, company); err != nil {
			return err
		}
		p.Org = org
		key, err = s.keys.FirstKey(ctx, tx, op, p)
		return err
	})
	return org, key, db.AccountFault(op, err)
}

// openSigned verifies a signed request and returns its content.
func (s *Registrations) openSigned(op, signed string) (user enterpriseUser, claims jwt.Claims, err error) {
	if s.enterprise.EnterpriseSecret == "" {
		return user, claims, fault.New(fault.NotFound, op, "This instance does not accept signed requests.")
	}
	refuse := func(message string) error { return fault.New(fault.Invalid, op, message) }
	if len(signed) > maxSigned {
		return user, claims, refuse("The signed request is too long.")
	}
	token, err := jwt.ParseSigned(signed, []jose.SignatureAlgorithm{jose.HS256})
	if err != nil {
		return user, claims, refuse("The request must be a JWT signed with HS256.")
	}
	if err := token.Claims([]byte(s.enterprise.EnterpriseSecret.Reveal()), &claims, &user); err != nil {
		return user, claims, refuse("The signature is not valid.")
	}
	now := s.clock.Now()
	switch {
	case claims.ID == "" || len(claims.ID) > 128 || !tenancy.Storable(claims.ID):
		return user, claims, refuse("The request needs a jti of at most 128 characters.")
	case claims.IssuedAt == nil || claims.Expiry == nil:
		return user, claims, refuse("The request needs iat and exp.")
	case claims.Expiry.Time().Sub(claims.IssuedAt.Time()) > maxSignedLife:
		return user, claims, refuse("The request may be valid for at most five minutes.")
	case !now.Before(claims.Expiry.Time()) || claims.IssuedAt.Time().After(now.Add(clockSkew)):
		return user, claims, refuse("The request is too old, or not valid yet.")
	case claims.NotBefore != nil && claims.NotBefore.Time().After(now.Add(clockSkew)):
		return user, claims, refuse("The request is not valid yet.")
	}
	return user, claims, nil
}
