package signin

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"

	"crier/platform/fault"
)

const accessToken = "access-token-51c0"

// forger is an issuer that responds with what a test gives it.
type forger struct {
	*server
	key jose.SigningKey

	mu       sync.Mutex
	metadata map[string]any
	keys     jose.JSONWebKeySet
	token    func(w http.ResponseWriter) // the response of the token endpoint
	userinfo string
	form     url.Values  // of the last token request
	header   http.Header // of the last token request
}

func startForger(t *testing.T) *forger {
	t.Helper()
	key := newKey(t)
	f := &forger{
		server: newServer(t), userinfo: `{"sub":"ada"}`,
		key: jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "one"}},
	}
	f.keys.Keys = []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "one", Use: "sig"}}
	f.metadata = map[string]any{
		"issuer": f.url, "authorization_endpoint": f.url + "/authorize", "token_endpoint": f.url + "/token",
		"jwks_uri": f.url + "/keys", "userinfo_endpoint": f.url + "/userinfo",
	}
	f.mux.HandleFunc("/.well-known/openid-configuration", f.locked(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(f.metadata)
	}))
	f.mux.HandleFunc("/keys", f.locked(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(f.keys)
	}))
	f.mux.HandleFunc("/token", f.locked(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		f.form, f.header = r.PostForm, r.Header
		w.Header().Set("Content-Type", "application/json")
		f.token(w)
	}))
	f.mux.HandleFunc("/userinfo", f.locked(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+accessToken {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = w.Write([]byte(f.userinfo))
	}))
	return f
}

func (f *forger) locked(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		h(w, r)
	}
}

// claims returns the claims of a valid id_token.
func (f *forger) claims(nonce string) map[string]any {
	now := time.Now().Unix()
	return map[string]any{
		"iss": f.url, "sub": "ada", "aud": clientID, "nonce": nonce, "iat": now, "exp": now + 60,
		"email": "ada@example.com", "email_verified": true, "name": "Ada",
	}
}

func sign(t *testing.T, key jose.SigningKey, claims map[string]any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatalf("encode the claims: %v", err)
	}
	signer, err := jose.NewSigner(key, nil)
	if err != nil {
		t.Fatalf("signer: %v", err)
	}
	token, err := signer.Sign(payload)
	if err != nil {
		t.Fatalf("sign: %v", err)
	}
	raw, err := token.CompactSerialize()
	if err != nil {
		t.Fatalf("serialize: %v", err)
	}
	return raw
}

// answer makes the token endpoint respond with the status and the JSON value.
func (f *forger) answer(status int, body any) {
	f.token = func(w http.ResponseWriter) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
}

// grant makes the token endpoint respond with an access token and the id_token.
func (f *forger) grant(idToken string) {
	f.answer(http.StatusOK, map[string]any{
		"access_token": accessToken, "token_type": "Bearer", "expires_in": 60, "id_token": idToken,
	})
}

// finish begins a sign-in, lets prepare set the responses, and finishes it.
func (f *forger) finish(t *testing.T, prepare func(nonce string)) (Identity, error) {
	t.Helper()
	p := openProviders(t, generic(f.server), finishLimit)
	start := begin(t, p, ProviderGeneric)
	prepare(start.Nonce)
	return p.Finish(t.Context(), ProviderGeneric, callback(start, "code-8b2d"))
}

func TestFinish_OneMinuteTokenIsAccepted(t *testing.T) {
	t.Parallel()
	f := startForger(t)
	hash, err := oidc.ClaimHash(accessToken, jose.RS256)
	if err != nil {
		t.Fatalf("at_hash: %v", err)
	}
	got, err := f.finish(t, func(nonce string) {
		claims := f.claims(nonce)
		claims["at_hash"], claims["aud"], claims["azp"] = hash, []string{"api", clientID}, clientID
		f.grant(sign(t, f.key, claims))
	})
	want := Identity{
		Provider: ProviderGeneric, Issuer: f.url, Subject: "ada", Email: "ada@example.com", EmailVerified: true, Name: "Ada",
	}
	if err != nil || got != want {
		t.Errorf("got %+v and the error %v, want %+v", got, err, want)
	}
}

func TestFinish_ForgedTokenIsRefused(t *testing.T) {
	t.Parallel()
	now := time.Now().Unix()
	for name, change := range map[string]map[string]any{
		"another issuer":                  {"iss": "https://attacker.example"},
		"no issuer":                       {"iss": ""},
		"another client":                  {"aud": "another"},
		"no client":                       {"aud": []string{}},
		"clients that are no text":        {"aud": []int{1}},
		"two clients, given to neither":   {"aud": []string{clientID, "another"}},
		"given to another client":         {"azp": "another"},
		"expired":                         {"exp": now - 301},
		"no expiry":                       {"exp": nil},
		"from the future":                 {"iat": now + 3600},
		"no time of issue":                {"iat": nil},
		"another nonce":                   {"nonce": "another"},
		"no nonce":                        {"nonce": nil},
		"not yet valid":                   {"nbf": now + 3600},
		"no subject":                      {"sub": ""},
		"a subject of 256 bytes":          {"sub": strings.Repeat("a", 256)},
		"the hash of another token":       {"at_hash": "bm90IHRoaXMgb25l"},
		"a name of Google without scheme": {"iss": "accounts.google.com"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startForger(t)
			_, err := f.finish(t, func(nonce string) {
				claims := f.claims(nonce)
				for claim, value := range change {
					claims[claim] = value
				}
				f.grant(sign(t, f.key, claims))
			})
			wantFault(t, err, fault.Invalid, "refused", "code-8b2d", accessToken, "attacker.example")
		})
	}
}

func TestFinish_ForgedSignatureIsRefused(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(f *forger, nonce string) string{
		"no token": func(*forger, string) string { return "" },
		"no JWT":   func(*forger, string) string { return "a.b.c" },
		"alg none": func(f *forger, nonce string) string {
			_, rest, _ := strings.Cut(sign(t, f.key, f.claims(nonce)), ".")
			payload, _, _ := strings.Cut(rest, ".")
			return "eyJhbGciOiJub25lIn0." + payload + "." // {"alg":"none"}
		},
		"HS256 with the client secret": func(f *forger, nonce string) string {
			key := []byte(clientSecret + clientSecret)
			f.keys.Keys = append(f.keys.Keys, jose.JSONWebKey{Key: key, KeyID: "shared"})
			return sign(t, jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: key, KeyID: "shared"}}, f.claims(nonce))
		},
		"unknown key": func(f *forger, nonce string) string {
			key := jose.JSONWebKey{Key: newKey(t), KeyID: "unknown"}
			return sign(t, jose.SigningKey{Algorithm: jose.RS256, Key: key}, f.claims(nonce))
		},
		"unknown key with the id of a known one": func(f *forger, nonce string) string {
			key := jose.JSONWebKey{Key: newKey(t), KeyID: "one"}
			return sign(t, jose.SigningKey{Algorithm: jose.RS256, Key: key}, f.claims(nonce))
		},
		"key for encryption": func(f *forger, nonce string) string {
			f.keys.Keys[0].Use = "enc"
			return sign(t, f.key, f.claims(nonce))
		},
		"changed claims": func(f *forger, nonce string) string {
			parts := strings.Split(sign(t, f.key, f.claims(nonce)), ".")
			claims := f.claims(nonce)
			claims["sub"] = "bob"
			parts[1] = strings.Split(sign(t, f.key, claims), ".")[1]
			return strings.Join(parts, ".")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startForger(t)
			_, err := f.finish(t, func(nonce string) { f.grant(forge(f, nonce)) })
			wantFault(t, err, fault.Invalid, "refused", "code-8b2d", accessToken)
		})
	}
}

func TestFinish_AddressOnlyWhenVerified(t *testing.T) {
	t.Parallel()
	const address = "ada@example.com"
	for name, c := range map[string]struct {
		email, verified any
		userinfo        string
		want            string
	}{
		"true":                          {email: address, verified: true, want: address},
		"the text true":                 {email: address, verified: "true", want: address},
		"upper case":                    {email: "ADA@example.com", verified: true, want: address},
		"false":                         {email: address, verified: false, userinfo: `{"sub":"ada","email":"` + address + `","email_verified":true}`},
		"the text false":                {email: address, verified: "false"},
		"a number":                      {email: address, verified: 1},
		"not said":                      {email: address},
		"not said, not an address":      {email: "x", verified: true},
		"said by userinfo":              {userinfo: `{"sub":"ada","email":"` + address + `","email_verified":true}`, want: address},
		"said as text by userinfo":      {userinfo: `{"sub":"ada","email":"` + address + `","email_verified":"true"}`, want: address},
		"denied by userinfo":            {userinfo: `{"sub":"ada","email":"` + address + `","email_verified":false}`},
		"of one, verified by the other": {email: address, userinfo: `{"sub":"ada","email_verified":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startForger(t)
			if c.userinfo != "" {
				f.userinfo = c.userinfo
			}
			got, err := f.finish(t, func(nonce string) {
				claims := f.claims(nonce)
				claims["email"], claims["email_verified"] = c.email, c.verified
				f.grant(sign(t, f.key, claims))
			})
			if err != nil || got.Email != c.want || got.EmailVerified != (c.want != "") {
				t.Errorf("got %+v and the error %v, want the address %q", got, err, c.want)
			}
			if got.Email != "" && got.Unverified != "" {
				t.Errorf("got %+v, want one of the two addresses", got)
			}
		})
	}
}

func TestFinish_UserinfoOfAnotherPersonIsRefused(t *testing.T) {
	t.Parallel()
	f := startForger(t)
	f.userinfo = `{"sub":"bob","email":"bob@example.com","email_verified":true}`
	_, err := f.finish(t, func(nonce string) {
		claims := f.claims(nonce)
		delete(claims, "email")
		f.grant(sign(t, f.key, claims))
	})
	wantFault(t, err, fault.Invalid, "refused", "bob")
}

func TestFinish_IssuerInTheCallback(t *testing.T) {
	t.Parallel()
	f := startForger(t)
	f.metadata["authorization_response_iss_parameter_supported"] = true
	p := openProviders(t, generic(f.server), finishLimit)
	start := begin(t, p, ProviderGeneric)
	f.grant(sign(t, f.key, f.claims(start.Nonce)))
	cb := callback(start, "code-8b2d")
	_, err := p.Finish(t.Context(), ProviderGeneric, cb)
	wantFault(t, err, fault.Invalid, "refused", cb.Code)
	if got := f.requests("token"); got != 0 {
		t.Errorf("got %d token requests without the issuer in the callback, want none", got)
	}
	cb.Issuer = f.url
	if _, err := p.Finish(t.Context(), ProviderGeneric, cb); err != nil {
		t.Errorf("Finish with the issuer in the callback: %v", err)
	}
}

func TestFinish_ClientAuthentication(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		methods []string
		basic   bool
	}{
		"default":        {basic: true},
		"both":           {methods: []string{"client_secret_post", "client_secret_basic"}, basic: true},
		"only in params": {methods: []string{"private_key_jwt", "client_secret_post"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startForger(t)
			if c.methods != nil {
				f.metadata["token_endpoint_auth_methods_supported"] = c.methods
			}
			_, err := f.finish(t, func(nonce string) { f.grant(sign(t, f.key, f.claims(nonce))) })
			if err != nil {
				t.Fatalf("Finish: %v", err)
			}
			basic, post := f.header.Get("Authorization") != "", f.form.Get("client_secret") != ""
			if basic != c.basic || post == c.basic {
				t.Errorf("got the secret in the header: %v, in the form: %v; want in the header: %v", basic, post, c.basic)
			}
		})
	}
}
