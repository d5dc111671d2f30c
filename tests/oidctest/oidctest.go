// Package oidctest runs an OpenID provider for tests. It is the provider of zitadel/oidc, with test
// accounts and one client.
package oidctest

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// The client of every Provider, and the password of all its people.
const (
	ClientID     = "crier"
	ClientSecret = "client-secret-3f9a"
	Password     = "password of the test person"
)

// People returns a Provider's accounts: ada, whose address is verified, and bob, whose address is
// not.
func People() []*storage.User {
	return []*storage.User{
		{
			ID: "ada", Username: "ada", Password: Password, FirstName: "Ada", LastName: "Byron",
			Email: "Ada@Example.com", EmailVerified: true,
		},
		{ID: "bob", Username: "bob", Password: Password, FirstName: "Bob", Email: "bob@example.com"},
	}
}

// people holds the accounts by id and by name, which are the same.
type people map[string]*storage.User

func (p people) GetUserByID(id string) *storage.User { return p[id] }

func (p people) GetUserByUsername(name string) *storage.User { return p[name] }

func (p people) ExampleClientID() string { return "service" }

// Provider is an OpenID provider, an http.Handler. It is safe for concurrent use.
type Provider struct {
	issuer, redirectURI string
	storage             *rotating
	mux                 *http.ServeMux
}

// New returns a Provider that responds at the address issuer and accepts one redirect URI. It has
// the accounts in People.
func New(t testing.TB, issuer, redirectURI string) *Provider {
	t.Helper()
	accounts := people{}
	for _, user := range People() {
		accounts[user.ID] = user
	}
	clients := map[string]*storage.Client{ClientID: storage.WebClient(ClientID, ClientSecret, redirectURI)}
	p := &Provider{
		issuer: issuer, redirectURI: redirectURI, mux: http.NewServeMux(),
		storage: &rotating{Storage: storage.NewStorageWithClients(accounts, clients)},
	}
	p.Rotate(t, "first")
	handler, err := op.NewProvider(&op.Config{CryptoKey: [32]byte{1}, CodeMethodS256: true}, p.storage,
		op.StaticIssuer(issuer), op.WithAllowInsecure())
	if err != nil {
		t.Fatalf("start the provider: %v", err)
	}
	p.mux.Handle("/", handler)
	p.mux.HandleFunc("/login/username", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			return // the form for a person
		}
		id := r.FormValue("id")
		err := p.storage.CheckUsernamePassword(r.FormValue("username"), r.FormValue("password"), id)
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		back := op.AuthCallbackURL(handler)(op.ContextWithIssuer(r.Context(), issuer), id)
		http.Redirect(w, r, back, http.StatusFound)
	})
	return p
}

// ServeHTTP responds to one request.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// Rotate replaces the signing key with a new one that has this id.
func (p *Provider) Rotate(t testing.TB, id string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatalf("generate a key: %v", err)
	}
	p.storage.key.Store(&signingKey{id: id, key: key})
}

// SignIn does what a person does in a browser at the address of an authorization request. It
// returns the query of the callback.
func (p *Provider) SignIn(t testing.TB, address, person string) url.Values {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatalf("cookie jar: %v", err)
	}
	browser := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), p.redirectURI) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	page, err := browser.Get(address)
	if err != nil {
		t.Fatalf("open the sign-in page: %v", err)
	}
	_ = page.Body.Close()
	form := url.Values{
		"username": {person}, "password": {Password}, "id": {page.Request.URL.Query().Get("authRequestID")},
	}
	resp, err := browser.PostForm(page.Request.URL.String(), form)
	if err != nil {
		t.Fatalf("send the form: %v", err)
	}
	_ = resp.Body.Close()
	callback, err := resp.Location()
	if err != nil {
		t.Fatalf("the provider did not redirect: status %d", resp.StatusCode)
	}
	query := callback.Query()
	if query.Get("code") == "" || query.Get("state") == "" {
		t.Fatalf("got the callback %v, want a code and a state", query)
	}
	return query
}

// rotating is the storage of a provider whose signing key can be replaced.
type rotating struct {
	*storage.Storage
	key atomic.Pointer[signingKey]
}

// SigningKey returns the current key.
func (r *rotating) SigningKey(context.Context) (op.SigningKey, error) { return r.key.Load(), nil }

// KeySet returns only the current key.
func (r *rotating) KeySet(context.Context) ([]op.Key, error) {
	return []op.Key{publicKey{r.key.Load()}}, nil
}

type signingKey struct {
	id  string
	key *rsa.PrivateKey
}

func (k *signingKey) ID() string { return k.id }

func (k *signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }

func (k *signingKey) Key() any { return k.key }

type publicKey struct{ *signingKey }

func (k publicKey) Algorithm() jose.SignatureAlgorithm { return jose.RS256 }

func (k publicKey) Use() string { return "sig" }

func (k publicKey) Key() any { return &k.key.PublicKey }
