// Package signin signs people in with GitHub, Google or any OpenID Connect issuer. It has no
// database. The caller stores the result of Begin until the browser returns from the provider, and
// deletes it before calling Finish.
package signin

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/outbound"
	"crier/platform/secret"
	"crier/tenancy"
)

// finishLimit is the time limit for a call to Begin or Finish, including all of its requests.
const finishLimit = 15 * time.Second

// tokenLength is the length of a state, a nonce or a verifier. At this length, each has 256 bits of
// entropy. It is also the minimum length of a verifier (RFC 7636).
const tokenLength = 43

const (
	maxCode    = 4096 // bytes
	maxSubject = 255  // bytes, OpenID Connect Core section 2
	maxName    = 128  // characters
)

// Start is a sign-in that has begun. The caller redirects the browser to URL, stores the other
// fields and the redirect URI for a few minutes, and binds State to the browser.
type Start struct {
	URL, State, Verifier, Nonce string
}

// Callback contains the parameters of the provider's redirect and the values that the caller stored
// under the state. The caller must already have verified and deleted the state, because a code and
// a nonce may be used only once.
type Callback struct {
	Code string
	// Issuer is the iss parameter defined by RFC 9207. It may be empty.
	Issuer string
	// RedirectURI is the redirect URI that was passed to Begin.
	RedirectURI     string
	Verifier, Nonce string
}

// Identity is an account at a provider. Issuer and Subject identify the account and do not change
// if its email address changes. Example: issuer https://accounts.google.com, subject
// 110169484474386276334
type Identity struct {
	Provider Provider
	// Issuer has at most 512 bytes, and Subject has at most 255.
	Issuer, Subject string
	// Email has the form that tenancy.CleanEmail returns. It is empty unless EmailVerified is set.
	Email string
	// Unverified is an email address that the provider does not confirm as the person's. It has the
	// same form as Email. Use it only in messages.
	Unverified string
	// EmailVerified is true if the provider confirms that the address belongs to the person.
	EmailVerified bool
	// Name has the form that tenancy.CleanName returns, with at most 128 characters. It may be
	// empty.
	Name string
}

// Name pairs a provider with its display label.
type Name struct {
	Provider Provider
	Label    string
}

// source is one provider. If an error matches errRefused, errUnverified or a clockError, the
// sign-in was rejected. If it matches errSetup, errPrivate, errNotFound or an issuerError, the
// provider is not set up correctly. Any other error means that the provider is unavailable.
type source interface {
	// address returns the provider's URL to which the browser is redirected to sign in.
	address(ctx context.Context, start Start, redirectURI string) (string, error)
	// identify exchanges the code, at most once, and returns the person's identity. The strings in
	// the Identity are unchanged from the provider's response.
	identify(ctx context.Context, cb Callback) (Identity, error)
}

// site is a configured provider.
type site struct {
	Name
	source source
}

// Providers holds the configured identity providers. It is safe for concurrent use.
type Providers struct {
	sites   []site
	limit   time.Duration
	clients []*outbound.Client
}

// New returns the configured providers without making any requests. It returns an error if the
// configuration is invalid. New creates an HTTP client for each provider, and Close closes the
// clients. A client can reach only public addresses and its provider's configured host and port,
// even if that host is on a private network.
func New(cfg Config, deps outbound.Deps, c clock.Clock) (*Providers, error) {
	return newProviders(cfg, deps, c, finishLimit)
}

// newProviders is like New, with the given time limit for Begin and Finish.
func newProviders(cfg Config, deps outbound.Deps, c clock.Clock, limit time.Duration) (*Providers, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := &Providers{limit: limit}
	// Metadata, keys and the code exchange each get a third of the limit.
	fetch := fetching{clock: c, limit: limit / 3}
	var faults []error
	if cfg.GitHubID != "" {
		address := strings.TrimRight(cmp.Or(cfg.GitHubURL, gitHubURL), "/")
		faults = append(faults, p.add(ProviderGitHub, "GitHub", address, deps, func(w web) source {
			return newGitHub(address, cfg.GitHubID, cfg.GitHubSecret, w)
		}))
	}
	if cfg.GoogleID != "" {
		faults = append(faults, p.add(ProviderGoogle, "Google", googleIssuer, deps, func(w web) source {
			return newIssuer(googleIssuer, cfg.GoogleID, cfg.GoogleSecret, w, fetch)
		}))
	}
	if cfg.ID != "" {
		faults = append(faults, p.add(ProviderGeneric, cmp.Or(cfg.Label, "SSO"), cfg.Issuer, deps, func(w web) source {
			i := newIssuer(cfg.Issuer, cfg.ID, cfg.Secret, w, fetch)
			i.trustEmail = cfg.TrustEmail
			return i
		}))
	}
	return p, errors.Join(faults...)
}

// add adds a provider. The provider gets its own HTTP client, which can reach the given URL.
func (p *Providers) add(
	provider Provider, label, address string, deps outbound.Deps, newSource func(web) source,
) error {
	out, err := outbound.To(address, deps)
	if err != nil {
		return err
	}
	p.clients = append(p.clients, out)
	p.sites = append(p.sites, site{Name: Name{Provider: provider, Label: label}, source: newSource(web{out: out})})
	return nil
}

// Check reads the issuers' metadata and logs problems that will make sign-ins fail. Call it after
// startup, which must not depend on an issuer.
func (p *Providers) Check(ctx context.Context, log *slog.Logger) {
	for _, s := range p.sites {
		i, ok := s.source.(*issuer)
		if !ok {
			continue
		}
		m, err := i.metadata.get(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && isSetup(err):
			log.WarnContext(ctx, "sign-ins will fail because a provider is not set up correctly",
				"provider", s.Label, "issuer", i.name, "error", err)
		case err != nil:
			log.WarnContext(ctx, "sign-ins fail until a provider responds correctly",
				"provider", s.Label, "issuer", i.name, "error", err)
		case m.Issuer != i.name:
			log.InfoContext(ctx, "using the issuer as its metadata names it",
				"provider", s.Label, "issuer", i.name, "named", m.Issuer)
		}
	}
}

// Close closes idle connections.
func (p *Providers) Close() {
	for _, out := range p.clients {
		out.Close()
	}
}

// Has reports whether the provider is configured.
func (p *Providers) Has(provider Provider) bool {
	_, ok := p.find(provider)
	return ok
}

// Names returns the configured providers in a fixed order.
func (p *Providers) Names() []Name {
	names := make([]Name, 0, len(p.sites))
	for _, s := range p.sites {
		names = append(names, s.Name)
	}
	return names
}

func (p *Providers) find(provider Provider) (site, bool) {
	for _, s := range p.sites {
		if s.Provider == provider {
			return s, true
		}
	}
	return site{}, false
}

// Begin starts a sign-in that will return to redirectURI, which the caller must have checked. The
// first Begin with an OpenID Connect provider reads the provider's metadata. Begin returns NotFound
// if the provider is not configured. It returns Unavailable if the provider does not respond within
// 15 seconds or if its response cannot be used.
func (p *Providers) Begin(ctx context.Context, provider Provider, redirectURI string) (Start, error) {
	const op = "signin.Begin"
	s, ok := p.find(provider)
	if !ok {
		return Start{}, unknownProvider(op)
	}
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	start, err := newStart()
	if err != nil {
		return Start{}, err
	}
	start.URL, err = s.source.address(ctx, start, redirectURI)
	if err != nil {
		return Start{}, s.fault(op, err)
	}
	return start, nil
}

func newStart() (Start, error) {
	var tokens [3]string
	for i := range tokens {
		token, err := secret.Token("", tokenLength)
		if err != nil {
			return Start{}, err
		}
		tokens[i] = token
	}
	return Start{State: tokens[0], Verifier: tokens[1], Nonce: tokens[2]}, nil
}

// Finish exchanges the code and returns the identity of the person who signed in. It sends the code
// at most once. After any error, the person must therefore begin the sign-in again.
//
// Finish returns NotFound if the provider is not configured. It returns Invalid if the provider
// rejects the code or if its response does not prove who signed in. It returns Unavailable if the
// provider does not respond within 15 seconds in total or if its response cannot be used.
//
// Errors and their causes never contain a code, a token or a secret. They also contain no text from
// the provider, except for the issuer that the provider's metadata names.
func (p *Providers) Finish(ctx context.Context, provider Provider, cb Callback) (Identity, error) {
	const op = "signin.Finish"
	s, ok := p.find(provider)
	if !ok {
		return Identity{}, unknownProvider(op)
	}
	if cb.Code == "" || len(cb.Code) > maxCode || cb.Verifier == "" {
		return Identity{}, s.fault(op, refused("the callback is incomplete"))
	}
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	found, err := s.source.identify(ctx, cb)
	if err != nil {
		return Identity{}, s.fault(op, err)
	}
	if found.Subject == "" || len(found.Subject) > maxSubject || !tenancy.Storable(found.Subject) {
		return Identity{}, s.fault(op, refused("the subject is not valid"))
	}
	return found.clean(provider), nil
}

// clean returns a copy of the identity whose strings can be stored and shown. It moves an
// unverified address from Email to Unverified.
func (i Identity) clean(provider Provider) Identity {
	email, valid := tenancy.CleanEmail(i.Email)
	if !valid {
		email = ""
	}
	unverified := ""
	if !i.EmailVerified {
		email, unverified = "", email
	}
	name, _ := tenancy.CleanName(i.Name, 1, maxName)
	return Identity{
		Provider: provider, Issuer: i.Issuer, Subject: i.Subject, Email: email, EmailVerified: email != "",
		Unverified: unverified, Name: name,
	}
}

func unknownProvider(op string) error {
	return fault.New(fault.NotFound, op, "This sign-in provider is not available here.")
}
