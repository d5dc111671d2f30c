package signin

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"crier/platform/fault"
)

// The operator configures the host and port of the issuer. Any other address that the issuer names
// is called only if it is public.
func TestFinish_PrivateEndpointsElsewhereAreRefused(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"token_endpoint", "jwks_uri", "userinfo_endpoint"} {
		f, other := startForger(t), newServer(t)
		f.metadata[endpoint] = other.url + "/elsewhere"
		_, err := f.finish(t, func(nonce string) {
			claims := f.claims(nonce)
			delete(claims, "email_verified") // so that userinfo is requested
			f.grant(sign(t, f.key, claims))
		})
		if !fault.Is(err, fault.Unavailable) || !errors.Is(err, errPrivate) {
			t.Errorf("%s on another host: got the error %v, want %v", endpoint, err, errPrivate)
		}
		if n := other.requests(""); n != 0 {
			t.Errorf("%s on another host: it was called %d times, want never", endpoint, n)
		}
	}
}

func TestBegin_RedirectsStayOnTheHost(t *testing.T) {
	t.Parallel()
	const wellKnown = "/.well-known/openid-configuration"
	for name, tc := range map[string]struct {
		change func(to string) string
		want   bool
	}{
		"the host of the issuer": {change: func(to string) string { return to }, want: true},
		"another name of it":     {change: func(to string) string { return strings.Replace(to, "127.0.0.1", "localhost", 1) }},
		"another host":           {change: func(string) string { return newServer(t).url }},
	} {
		f := startForger(t)
		f.mux.HandleFunc("/tenant"+wellKnown, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, tc.change(f.url)+wellKnown, http.StatusFound)
		})
		f.metadata["issuer"] = f.url + "/tenant"
		cfg := generic(f.server)
		cfg.Issuer = f.url + "/tenant"
		_, err := openProviders(t, cfg, finishLimit).Begin(t.Context(), ProviderGeneric, redirectURI)
		if (err == nil) != tc.want {
			t.Errorf("a redirect to %s: got the error %v, want success: %v", name, err, tc.want)
		}
	}
}
