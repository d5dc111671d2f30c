package grant_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/apps/boot"
	"crier/oidc"
	"crier/oidc/grant"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/credential"
	"crier/tests/dbtest"
	"crier/tests/tenancytest"
	"crier/tests/tenant"
)

const (
	baseURL     = "https://crier.test"
	redirectURI = "https://client.example/cb"
	verifier    = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
)

// rig is an OAuth server on a database of its own, with a clock that the test moves.
type rig struct {
	*testing.T
	*boot.OAuth
	db       *pg.DB
	accounts *boot.Accounts
	owner    tenancy.Principal
	client   oidc.Client
	now      *atomic.Int64 // how far the clock is ahead
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, db: dbtest.Open(t), now: new(atomic.Int64)}
	r.accounts, r.OAuth = r.process(r.db, nil)
	r.owner = tenant.New(t, r.db)
	r.client = r.register(oidc.Metadata{Name: "Claude", Auth: "none", RedirectURIs: []string{redirectURI}}).Client
	return r
}

// process returns the parts of a process that uses the given database.
func (r *rig) process(db *pg.DB, revocations credential.Revocations) (*boot.Accounts, *boot.OAuth) {
	r.Helper()
	begin := time.Now()
	now := clock.Func(func() time.Time { return begin.Add(time.Duration(r.now.Load())) })
	accounts := tenancytest.With(r.T, boot.AccountsDeps{DB: db, Clock: now})
	return accounts, boot.NewOAuth(grant.Config{AccessTTL: time.Hour, BaseURL: baseURL}, boot.OAuthDeps{
		Accounts: accounts, Clock: now, Fetch: http.DefaultTransport, Catalog: catalog{}, Revocations: revocations,
	})
}

// catalog knows the channel and the customer with these ids.
type catalog struct{}

const (
	knownChannel  = "0193b2c4-7d10-7a31-9c55-2f0e6b1a4d01"
	knownCustomer = "0193b2c4-7d10-7a31-9c55-2f0e6b1a4d02"
	unknownID     = "0193b2c4-7d10-7a31-9c55-2f0e6b1a4d03"
)

func (catalog) Unknown(_ context.Context, _ tenancy.Principal, channels, customers []string) (a, b []string, err error) {
	return slices.DeleteFunc(slices.Clone(channels), func(s string) bool { return s == knownChannel }),
		slices.DeleteFunc(slices.Clone(customers), func(s string) bool { return s == knownCustomer }), nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r *rig) advance(d time.Duration) { r.now.Add(int64(d)) }

func (r *rig) register(m oidc.Metadata) oidc.Registration {
	r.Helper()
	out, err := r.Clients.Register(r.Context(), m, tenancytest.Here)
	must(r.T, err)
	return out
}

// consent returns a consent to everything, with a token of its own.
func (r *rig) consent() oidc.Consent {
	r.Helper()
	token, err := secret.Token("", 20)
	must(r.T, err)
	sum := sha256.Sum256([]byte(verifier))
	return oidc.Consent{Token: token, Scopes: oidc.AllScopes(), Request: oidc.AuthorizationRequest{
		Client: r.client, RedirectURI: redirectURI, RedirectSent: true, Scopes: oidc.AllScopes(),
		Challenge: base64.RawURLEncoding.EncodeToString(sum[:]), Resource: oidc.Resource(baseURL),
	}}
}

// approve returns the code for a consent, which change may modify.
func (r *rig) approve(p tenancy.Principal, change func(c *oidc.Consent)) string {
	r.Helper()
	c := r.consent()
	if change != nil {
		change(&c)
	}
	code, err := r.Grants.Approve(r.Context(), p, c)
	must(r.T, err)
	return code
}

func request(code string) oidc.CodeRequest {
	return oidc.CodeRequest{Code: code, RedirectURI: redirectURI, Verifier: verifier}
}

// tokens returns the tokens for a person's consent, which change may modify.
func (r *rig) tokens(p tenancy.Principal, change func(c *oidc.Consent)) oidc.Tokens {
	r.Helper()
	out, err := r.Grants.Exchange(r.Context(), r.client, request(r.approve(p, change)))
	must(r.T, err)
	return out
}

func (r *rig) refresh(token string) oidc.Tokens {
	r.Helper()
	out, err := r.Grants.Refresh(r.Context(), r.client, token)
	must(r.T, err)
	return out
}

// wantCode fails the test unless the error is an oidc.Error with the code.
func (r *rig) wantCode(what string, err error, want oidc.Code) {
	r.Helper()
	var got *oidc.Error
	if !errors.As(err, &got) || got.Code != want || got.Message == "" {
		r.Errorf("%s: got %v, want %s", what, err, want)
	}
}

// wantToken fails the test unless an access token is accepted (want is "") or rejected. It empties
// the cache first.
func (r *rig) wantToken(what, access string, want fault.Kind) tenancy.Principal {
	r.Helper()
	r.Grants.Cached().ForgetAll()
	p, err := r.Grants.Authenticate(r.Context(), access)
	if want == "" && err != nil || want != "" && !fault.Is(err, want) {
		r.Errorf("%s: got %v, want %q", what, err, want)
	}
	return p
}

// count returns a number that a statement returns as a tenant.
func (r *rig) count(sql string) (n int) {
	r.Helper()
	must(r.T, r.db.InOrg(r.Context(), r.owner.Org.UUID(), func(tx pgx.Tx) error {
		return tx.QueryRow(r.Context(), sql).Scan(&n)
	}))
	return n
}

// exec executes a statement as a tenant.
func (r *rig) exec(sql string, args ...any) {
	r.Helper()
	must(r.T, r.db.InOrg(r.Context(), r.owner.Org.UUID(), func(tx pgx.Tx) error {
		_, err := tx.Exec(r.Context(), sql, args...)
		return err
	}))
}
