package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"golang.org/x/oauth2"

	"crier/platform/clock"
	"crier/platform/secret"
)

// issuer is an OpenID Connect provider.
type issuer struct {
	name   string
	id     string
	secret secret.Text
	// trustEmail is true if all email addresses from the issuer count as verified.
	trustEmail bool
	web        web
	clock      clock.Clock
	metadata   fetched[metadata]
	keys       fetched[[]jose.JSONWebKey]
}

func newIssuer(name, id string, key secret.Text, w web, f fetching) *issuer {
	i := &issuer{name: name, id: id, secret: key, web: w, clock: f.clock}
	i.metadata.fetching, i.metadata.fetch = f, i.fetchMetadata
	i.keys.fetching, i.keys.fetch = f, i.fetchKeys
	return i
}

// metadata contains the part of an issuer's metadata that is needed for sign-ins.
type metadata struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Keys          string   `json:"jwks_uri"`
	UserInfo      string   `json:"userinfo_endpoint"`
	AuthMethods   []string `json:"token_endpoint_auth_methods_supported"`
	// SendsIssuer is true if every callback contains the iss parameter defined by RFC 9207.
	SendsIssuer bool `json:"authorization_response_iss_parameter_supported"`
}

func (i *issuer) address(ctx context.Context, start Start, redirectURI string) (string, error) {
	m, err := i.metadata.get(ctx)
	if err != nil {
		return "", err
	}
	return i.client(m, redirectURI).AuthCodeURL(start.State, oauth2.SetAuthURLParam("nonce", start.Nonce),
		oauth2.S256ChallengeOption(start.Verifier)), nil
}

func (i *issuer) identify(ctx context.Context, cb Callback) (Identity, error) {
	m, err := i.metadata.get(ctx)
	if err != nil {
		return Identity{}, err
	}
	if cb.Issuer != "" && cb.Issuer != m.Issuer {
		return Identity{}, refused("the callback names another issuer")
	}
	if cb.Issuer == "" && m.SendsIssuer {
		return Identity{}, refused("the callback names no issuer")
	}
	token, err := i.web.exchange(ctx, i.client(m, cb.RedirectURI), cb)
	if err != nil {
		return Identity{}, err
	}
	raw, _ := token.Extra("id_token").(string)
	c, err := i.verify(ctx, m, raw, token.AccessToken, cb.Nonce)
	if err != nil {
		return Identity{}, err
	}
	about, err := i.profile(ctx, m, token.AccessToken, c)
	if err != nil {
		return Identity{}, err
	}
	verified := i.trustEmail || about.Verified != nil && bool(*about.Verified)
	return Identity{
		Issuer: m.Issuer, Subject: c.Subject, Email: about.Email, EmailVerified: verified, Name: about.Name,
	}, nil
}

// client returns the OAuth configuration for a sign-in. It always sets the authentication style,
// because oauth2 would otherwise try both styles and send the code with each.
func (i *issuer) client(m metadata, redirectURI string) *oauth2.Config {
	style := oauth2.AuthStyleInHeader
	if len(m.AuthMethods) > 0 && !slices.Contains(m.AuthMethods, string(oidc.AuthMethodBasic)) {
		style = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{
		ClientID: i.id, ClientSecret: i.secret.Reveal(), RedirectURL: redirectURI,
		Endpoint: oauth2.Endpoint{AuthURL: m.Authorization, TokenURL: m.Token, AuthStyle: style},
		Scopes:   []string{oidc.ScopeOpenID, oidc.ScopeEmail, oidc.ScopeProfile},
	}
}

// profile returns the person's name and email address. It reads them from the id_token if the token
// contains an address and it is known whether the address is verified. Otherwise, it reads them
// from the userinfo endpoint, if there is one, because that is where the code flow provides them.
func (i *issuer) profile(ctx context.Context, m metadata, token string, c claims) (profile, error) {
	if c.Email != "" && (c.Verified != nil || i.trustEmail) || m.UserInfo == "" {
		return c.profile, nil
	}
	var info struct {
		Subject string `json:"sub"`
		profile
	}
	if err := i.web.getJSON(ctx, m.UserInfo, token, &info); err != nil {
		return profile{}, fmt.Errorf("userinfo endpoint: %w", err)
	}
	if info.Subject != c.Subject {
		return profile{}, refused("the userinfo endpoint returned another person")
	}
	return info.profile, nil
}

// fetchMetadata reads the issuer's metadata (OpenID Connect Discovery).
func (i *issuer) fetchMetadata(ctx context.Context) (metadata, error) {
	var m metadata
	err := i.web.getJSON(ctx, strings.TrimRight(i.name, "/")+oidc.DiscoveryEndpoint, "", &m)
	var answer *statusError
	if errors.As(err, &answer) && answer.status == http.StatusNotFound {
		return metadata{}, errNotFound
	}
	if err != nil {
		return metadata{}, fmt.Errorf("metadata of the issuer: %w", err)
	}
	if !sameIssuer(m.Issuer, i.name) || len(m.Issuer) > maxIssuer {
		return metadata{}, &issuerError{configured: i.name, named: m.Issuer}
	}
	if reason := m.reject(i.name); reason != "" {
		return metadata{}, fmt.Errorf("metadata of the issuer: %w: %s", errAnswer, reason)
	}
	return m, nil
}

// sameIssuer reports whether two issuers are equal except for a trailing slash. Use it only to
// compare the configured issuer with the issuer in the metadata. Everywhere else, the issuer must
// match the metadata exactly.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// reject returns the reason why the metadata cannot be used, or "" if it can. The endpoints of an
// https issuer must also use https, because the code and the secret are sent to them.
func (m metadata) reject(name string) string {
	endpoints := []string{m.Authorization, m.Token, m.Keys}
	if m.UserInfo != "" {
		endpoints = append(endpoints, m.UserInfo)
	}
	for _, endpoint := range endpoints {
		u, ok := parseAddress(endpoint)
		if !ok || u.Scheme == "http" && !isHTTP(name) {
			return "an endpoint is missing or not https"
		}
	}
	basic, post := string(oidc.AuthMethodBasic), string(oidc.AuthMethodPost)
	if len(m.AuthMethods) > 0 && !slices.Contains(m.AuthMethods, basic) && !slices.Contains(m.AuthMethods, post) {
		return "the token endpoint does not accept a client secret"
	}
	return ""
}

func isHTTP(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "http"
}

// fetchKeys reads the issuer's keys. It leaves out keys of unknown types.
func (i *issuer) fetchKeys(ctx context.Context) ([]jose.JSONWebKey, error) {
	m, err := i.metadata.get(ctx)
	if err != nil {
		return nil, err
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := i.web.getJSON(ctx, m.Keys, "", &set); err != nil {
		return nil, fmt.Errorf("keys of the issuer: %w", err)
	}
	keys := make([]jose.JSONWebKey, 0, len(set.Keys))
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(raw) == nil {
			keys = append(keys, key)
		}
	}
	return keys, nil
}
