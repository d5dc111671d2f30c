package signin

import (
	"errors"
	"strings"
	"testing"

	"crier/platform/env"
	"crier/platform/outbound"
)

func load(t *testing.T, values map[string]string) (Config, error) {
	var cfg Config
	lookup := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	err := env.Load(t.Context(), lookup, &cfg)
	return cfg, err
}

func TestConfig_Defaults(t *testing.T) {
	t.Parallel()
	cfg, err := load(t, nil)
	if err != nil || cfg.GitHubURL != "https://github.com" || cfg.Label != "SSO" || cfg.GitHubID != "" {
		t.Errorf("got %+v and the error %v, want github.com, SSO and no provider", cfg, err)
	}
}

func TestConfig_Faults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values map[string]string
		want   string // the name of the variable, "" if there is no fault
	}{
		"all of GitHub":         {map[string]string{"GITHUB_CLIENT_ID": "a", "GITHUB_CLIENT_SECRET": "b"}, ""},
		"GitHub without secret": {map[string]string{"GITHUB_CLIENT_ID": "a"}, "GITHUB_CLIENT_SECRET"},
		"GitHub without id":     {map[string]string{"GITHUB_CLIENT_SECRET": "b"}, "GITHUB_CLIENT_ID"},
		"GitHub over http":      {map[string]string{"GITHUB_URL": "http://ghes.example"}, "GITHUB_URL"},
		"GitHub with a path":    {map[string]string{"GITHUB_URL": "https://ghes.example/api/v3"}, "GITHUB_URL"},
		"GitHub on loopback":    {map[string]string{"GITHUB_URL": "http://127.0.0.1:4000"}, ""},
		"Google without id":     {map[string]string{"GOOGLE_CLIENT_SECRET": "b"}, "GOOGLE_CLIENT_ID"},
		"all of OIDC":           {oidcValues("https://idp.example/realms/one"), ""},
		"OIDC on localhost":     {oidcValues("http://localhost:8080"), ""},
		"OIDC on ::1":           {oidcValues("http://[::1]:8080"), ""},
		"OIDC without id":       {map[string]string{"OIDC_ISSUER": "https://idp.example"}, "OIDC_CLIENT_ID"},
		"OIDC without issuer":   {map[string]string{"OIDC_CLIENT_ID": "a", "OIDC_CLIENT_SECRET": "b"}, "OIDC_ISSUER"},
		"OIDC over http":        {oidcValues("http://idp.example"), "OIDC_ISSUER"},
		"OIDC with a fragment":  {oidcValues("https://idp.example/#x"), "OIDC_ISSUER"},
		"OIDC with a query":     {oidcValues("https://idp.example/?x=1"), "OIDC_ISSUER"},
		"OIDC with a password":  {oidcValues("https://me:pw@idp.example"), "OIDC_ISSUER"},
		"OIDC without a host":   {oidcValues("https:///x"), "OIDC_ISSUER"},
		"OIDC of 513 bytes":     {oidcValues("https://idp.example/" + strings.Repeat("x", 493)), "OIDC_ISSUER"},
		"a long name":           {map[string]string{"OIDC_NAME": strings.Repeat("x", 65)}, "OIDC_NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, c.values)
			var f env.Fault
			if errors.As(err, &f); f.Name != c.want || (err != nil) != (c.want != "") {
				t.Errorf("got the error %v, want a fault of %q", err, c.want)
			}
		})
	}
}

func oidcValues(issuer string) map[string]string {
	return map[string]string{"OIDC_ISSUER": issuer, "OIDC_CLIENT_ID": "a", "OIDC_CLIENT_SECRET": "b"}
}

func TestNew_InvalidConfigFails(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{GitHubID: "a"}, outbound.Deps{}, nil); err == nil {
		t.Error("got no error for a client id without its secret, want one")
	}
}

func TestMetadata_GoogleHasTwoNames(t *testing.T) {
	t.Parallel()
	google, other := metadata{Issuer: googleIssuer}, metadata{Issuer: "https://idp.example"}
	for name, want := range map[string]bool{
		"https://accounts.google.com": true, "accounts.google.com": true, "http://accounts.google.com": false, "": false,
	} {
		if got := google.isNamed(name); got != want {
			t.Errorf("got %v for the issuer %q of Google, want %v", got, name, want)
		}
	}
	if other.isNamed("idp.example") {
		t.Error("the issuer was accepted without its scheme, want that only for Google")
	}
}
