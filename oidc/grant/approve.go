package grant

import (
	"context"
	"strconv"
	"strings"
	"time"

	"crier/oidc"
	grantstore "crier/oidc/grant/store"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/db"
)

const (
	// maxPlaces is the maximum number of channels in a grant. The same limit applies to customers.
	maxPlaces = 1000
	// maxPostsPerDay is the highest daily post limit that a grant can have.
	maxPostsPerDay = 10_000
)

// Approve stores a person's consent and returns a code for the client. The code works for a minute.
// A person has one grant per client and organization. Approving the client again replaces what that
// grant allows, even for tokens that have already been issued.
//
// Approve returns Conflict if the consent's token has been used, and Invalid with the names of the
// fields if the scopes or limits are not valid. It returns Forbidden if the person has no access to
// the organization or is being impersonated. It returns an oidc.Error with InvalidClient if the
// client no longer exists, and with InvalidRequest if no code may be issued for its request.
func (s *Grants) Approve(ctx context.Context, p tenancy.Principal, c oidc.Consent) (string, error) {
	const op = "oidc.Approve"
	if err := s.checkConsent(ctx, op, p, &c); err != nil {
		return "", err
	}
	if err := checkRequest(c.Request); err != nil {
		return "", err
	}
	if c.Token == "" {
		return "", fault.New(fault.Internal, op, "")
	}
	plain, hash, err := newToken(op, oidc.CodePrefix)
	if err != nil {
		return "", err
	}
	err = s.db.InOrgAs(ctx, op, p, func(tx *db.OrgTx) error {
		tx, grant, err := s.saveGrant(ctx, tx, p, c)
		if err != nil {
			return err
		}
		r := c.Request
		return grantstore.InsertCode(ctx, tx, hash, secret.HashToken(c.Token), grantstore.Code{
			Grant: grant, Client: r.Client.ID, RedirectURI: r.RedirectURI, Sent: r.RedirectSent, Challenge: r.Challenge,
			Scopes: c.Scopes.Names(), Resource: oidc.Resource(s.cfg.BaseURL),
			ExpiresAt: s.clock.Now().Add(oidc.CodeLife),
		})
	})
	if err != nil {
		return "", approveFault(op, err)
	}
	s.cache.ForgetOrgs(p.Org)
	return plain, nil
}

// checkRequest returns an oidc.Error with InvalidRequest if no code may be issued for the request.
// The caller checked the request before showing the consent page, but the client may have changed
// since then.
func checkRequest(r oidc.AuthorizationRequest) error {
	switch {
	case !r.Client.MatchRedirect(r.RedirectURI) || !r.RedirectSent && r.Client.NeedsChallenge():
		return oidc.Fail(oidc.InvalidRequest, "The client has not registered this redirect URI.")
	case r.Challenge == "" && r.Client.NeedsChallenge(), r.Challenge != "" && !oidc.IsChallenge(r.Challenge):
		return oidc.Fail(oidc.InvalidRequest, "An S256 code_challenge is required.")
	}
	return nil
}

// approveFault converts errors to messages that the person or the client can understand.
func approveFault(op string, err error) error {
	switch {
	case pg.IsUnique(err, "oauth_code_request_key"):
		return fault.New(fault.Conflict, op, "This request has been answered. Start again in the application.")
	case pg.IsNoRows(err):
		return oidc.Fail(oidc.InvalidClient, "There is no such client. It may have to register again.")
	}
	return result(err)
}

// saveGrant stores the grant that a person has consented to, and records it in the audit log. The
// caller must continue with the returned transaction.
func (s *Grants) saveGrant(ctx context.Context, tx *db.OrgTx, p tenancy.Principal, c oidc.Consent) (
	*db.OrgTx, tenancy.GrantID, error) {
	none := tenancy.GrantID{}
	gate, err := tx.Leave(ctx)
	if err != nil {
		return nil, none, err
	}
	client := c.Request.Client
	if err := s.clients.MarkApproved(ctx, gate, client.ID); err != nil {
		return nil, none, err
	}
	if tx, err = gate.Enter(ctx, p.Org); err != nil {
		return nil, none, err
	}
	now := s.clock.Now()
	saved, err := grantstore.SaveGrant(ctx, tx, grantstore.Grant{
		ID: id.New[tenancy.GrantTag](), Client: client.ID, ClientID: client.ClientID, ClientKind: client.Kind,
		ClientName: client.Name, Person: p.Person, Scopes: c.Scopes.Names(),
		WriteDeclined: c.Request.Scopes.Writes() && !c.Scopes.Writes(), Channels: orEmpty(c.Limits.Channels),
		Customers: orEmpty(c.Limits.Customers), MustAsk: c.Limits.MustAsk, PostsPerDay: c.Limits.PostsPerDay,
		EndsAt: c.Limits.EndsAt, CreatedAt: now,
	})
	if err != nil {
		return nil, none, err
	}
	// The new consent may change the limits of existing tokens.
	if err := db.AnnounceOrg(ctx, tx, p.Org); err != nil {
		return nil, none, err
	}
	return tx, saved, db.Audit(ctx, tx, p.Event(tenancy.ActionAgentApproved, describe(c)), now)
}

// describe returns a description of a consent for the audit log. Example: Claude: mcp:read
// mcp:write; only drafts; 3 channels
func describe(c oidc.Consent) string {
	l := c.Limits
	parts := []string{c.Request.Client.Name + ": " + c.Scopes.String()}
	if l.MustAsk {
		parts = append(parts, "only drafts")
	}
	for _, n := range []struct {
		count int
		words string
	}{
		{count: len(l.Channels), words: "channels"}, {count: len(l.Customers), words: "customers"},
		{count: l.PostsPerDay, words: "posts a day"},
	} {
		if n.count > 0 {
			parts = append(parts, strconv.Itoa(n.count)+" "+n.words)
		}
	}
	if l.EndsAt != nil {
		parts = append(parts, "until "+l.EndsAt.UTC().Format(time.RFC3339))
	}
	return strings.Join(parts, "; ")
}

// checkConsent checks that the principal may consent and that the consent's limits are valid. It
// removes scopes that the client did not request.
func (s *Grants) checkConsent(ctx context.Context, op string, p tenancy.Principal, c *oidc.Consent) error {
	if err := bySession(op, p); err != nil {
		return err
	}
	if err := db.RejectImpersonator(op, p); err != nil {
		return err
	}
	switch p.Access {
	case tenancy.AccessFull:
	case tenancy.AccessEnroll:
		return db.Unenrolled(op)
	default:
		return fault.New(fault.Forbidden, op, "You do not have access to any organization.")
	}
	c.Scopes = c.Scopes.Within(c.Request.Scopes)
	return s.checkLimits(ctx, op, p, c)
}

// checkLimits returns Invalid with the names of the fields if the consent's scopes or limits are
// not valid in the organization.
func (s *Grants) checkLimits(ctx context.Context, op string, p tenancy.Principal, c *oidc.Consent) error {
	l := c.Limits
	var in tenancy.Inputs
	in.Check(c.Scopes.Reads(), "scopes", "must allow the application to read")
	in.Check(l.PostsPerDay >= 0 && l.PostsPerDay <= maxPostsPerDay, "postsPerDay", "must be from 0 to 10000")
	in.Check(l.EndsAt == nil || l.EndsAt.After(s.clock.Now()), "endsAt", "must be in the future")
	in.Check(l.EndsAt == nil || l.EndsAt.Year() < 10_000, "endsAt", "must be before the year 10000")
	in.Check(areIDs(l.Channels), "channels", "must be at most 1000 channel ids")
	in.Check(areIDs(l.Customers), "customers", "must be at most 1000 customer ids")
	if err := in.Err(op); err != nil || s.catalog == nil || len(l.Channels)+len(l.Customers) == 0 {
		return err
	}
	noChannels, noCustomers, err := s.catalog.Unknown(ctx, p, l.Channels, l.Customers)
	if err != nil {
		return err
	}
	in.Check(len(noChannels) == 0, "channels", "must be channels of the organization")
	in.Check(len(noCustomers) == 0, "customers", "must be customers of the organization")
	return in.Err(op)
}

// anyTag is the tag for parsing ids whose types belong to other packages.
type anyTag struct{}

func areIDs(list []string) bool {
	for _, one := range list {
		if _, ok := id.Parse[anyTag](one); !ok {
			return false
		}
	}
	return len(list) <= maxPlaces
}

// orEmpty returns list, or an empty slice if list is nil, because the database column cannot be
// null.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
