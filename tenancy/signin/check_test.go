package signin

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"crier/platform/fault"
)

// check returns what Check logs.
func check(t *testing.T, cfg Config) string {
	t.Helper()
	var log bytes.Buffer
	openProviders(t, cfg, finishLimit).Check(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
	return log.String()
}

func TestFinish_SlashAtTheEndOfTheIssuer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ configured, named string }{
		"only in the setting":  {configured: "/", named: ""},
		"only in the metadata": {configured: "", named: "/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startForger(t)
			f.metadata["issuer"] = f.url + c.named
			cfg := generic(f.server)
			cfg.Issuer = f.url + c.configured
			p := openProviders(t, cfg, finishLimit)
			finish := func(iss string) (Identity, error) {
				start := begin(t, p, ProviderGeneric)
				claims := f.claims(start.Nonce)
				claims["iss"] = iss
				f.grant(sign(t, f.key, claims))
				return p.Finish(t.Context(), ProviderGeneric, callback(start, "code-8b2d"))
			}
			got, err := finish(f.url + c.named)
			if err != nil || got.Issuer != f.url+c.named {
				t.Errorf("got %+v and the error %v, want the issuer of the metadata", got, err)
			}
			_, err = finish(f.url + c.configured)
			wantFault(t, err, fault.Invalid, "refused")
			log := check(t, cfg)
			if strings.Contains(log, "level=WARN") || !strings.Contains(log, "named="+f.url+c.named+"\n") {
				t.Errorf("got the log %q, want both issuers and no warning", log)
			}
		})
	}
}

func TestBegin_OtherIssuerIsASetupFault(t *testing.T) {
	t.Parallel()
	for name, named := range map[string]string{
		"another host": "https://another.example", "two slashes more": "//", "none": "none",
		"a text that is too long": "https://another.example/" + strings.Repeat("x", 2000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startForger(t)
			switch named {
			case "//":
				named = f.url + "//"
				f.metadata["issuer"] = named
			case "none":
				named = ""
				delete(f.metadata, "issuer")
			default:
				f.metadata["issuer"] = named
			}
			_, err := openProviders(t, generic(f.server), finishLimit).Begin(t.Context(), ProviderGeneric, redirectURI)
			wantFault(t, err, fault.Unavailable, "The sign-in with SSO is not set up correctly: tell the operator")
			log := check(t, generic(f.server))
			for _, text := range []string{err.Error(), log} {
				shown := named[:min(len(named), maxIssuer)]
				if !strings.Contains(text, f.url) || !strings.Contains(text, shown) || len(text) > 2000 {
					t.Errorf("got %q, want both issuers, shortened", text)
				}
			}
			if !strings.Contains(log, "level=WARN") {
				t.Errorf("got the log %q, want a warning", log)
			}
		})
	}
}

func TestBegin_MissingMetadataIsASetupFault(t *testing.T) {
	t.Parallel()
	f := startForger(t)
	cfg := generic(f.server)
	cfg.Issuer = f.url + wellKnown
	_, err := openProviders(t, cfg, finishLimit).Begin(t.Context(), ProviderGeneric, redirectURI)
	wantFault(t, err, fault.Unavailable, "not set up correctly")
	if log := check(t, cfg); !strings.Contains(log, "level=WARN") || !strings.Contains(log, "address of its metadata without") {
		t.Errorf("got the log %q, want a warning that says what an issuer is", log)
	}
}

func TestCheck_SaysWhetherTheProviderIsAwayOrWrong(t *testing.T) {
	t.Parallel()
	f := startForger(t)
	cfg := generic(f.server)
	cfg.GitHubID, cfg.GitHubSecret = "id", "secret"
	if log := check(t, cfg); log != "" {
		t.Errorf("got the log %q of a provider that is set up correctly, want none", log)
	}
	f.mux.HandleFunc("/busy"+wellKnown, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
	})
	cfg.Issuer = f.url + "/busy"
	if log := check(t, cfg); !strings.Contains(log, "sign-ins fail until a provider responds") {
		t.Errorf("got the log %q of a provider that is away, want a warning that it is", log)
	}
}

func TestFinish_TrustedAddress(t *testing.T) {
	t.Parallel()
	const address = "ada@example.com"
	for name, c := range map[string]struct {
		email, verified any
		want            string
	}{
		"not said":         {email: address, want: address},
		"false":            {email: address, verified: false, want: address},
		"the text true":    {email: address, verified: "true", want: address},
		"not an address":   {email: "x"},
		"no address named": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startForger(t)
			cfg := generic(f.server)
			cfg.TrustEmail = true
			p := openProviders(t, cfg, finishLimit)
			start := begin(t, p, ProviderGeneric)
			claims := f.claims(start.Nonce)
			claims["email"], claims["email_verified"] = c.email, c.verified
			f.grant(sign(t, f.key, claims))
			got, err := p.Finish(t.Context(), ProviderGeneric, callback(start, "code-8b2d"))
			if err != nil || got.Email != c.want || got.EmailVerified != (c.want != "") || got.Unverified != "" {
				t.Errorf("got %+v and the error %v, want the verified address %q", got, err, c.want)
			}
		})
	}
}
