package signin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"golang.org/x/oauth2"

	"crier/platform/secret"
)

// gitHub signs people in with GitHub or a GitHub Enterprise Server. GitHub supports OAuth but not
// OpenID Connect, so gitHub uses its API to find out who signed in.
type gitHub struct {
	url, api string
	client   oauth2.Config
	web      web
}

func newGitHub(address, id string, key secret.Text, w web) *gitHub {
	g := &gitHub{url: address, api: address + "/api/v3", web: w}
	if address == gitHubURL {
		g.api = "https://api.github.com"
	}
	g.client = oauth2.Config{
		ClientID: id, ClientSecret: key.Reveal(), Scopes: []string{"read:user", "user:email"},
		Endpoint: oauth2.Endpoint{
			AuthURL: address + "/login/oauth/authorize", TokenURL: address + "/login/oauth/access_token",
			AuthStyle: oauth2.AuthStyleInParams,
		},
	}
	return g
}

func (g *gitHub) address(_ context.Context, start Start, redirectURI string) (string, error) {
	client := g.client
	client.RedirectURL = redirectURI
	return client.AuthCodeURL(start.State, oauth2.S256ChallengeOption(start.Verifier)), nil
}

// identify accepts a callback only if cb.Issuer is empty, GitHub's URL or the URL of GitHub's OAuth
// server.
func (g *gitHub) identify(ctx context.Context, cb Callback) (Identity, error) {
	if cb.Issuer != "" && cb.Issuer != g.url && cb.Issuer != g.url+"/login/oauth" {
		return Identity{}, refused("the callback names another issuer")
	}
	client := g.client
	client.RedirectURL = cb.RedirectURI
	token, err := g.web.exchange(ctx, &client, cb)
	if err != nil {
		return Identity{}, err
	}
	var user struct {
		ID    int64  `json:"id"`
		Login string `json:"login"`
		Name  string `json:"name"`
	}
	if err := g.web.getJSON(ctx, g.api+"/user", token.AccessToken, &user); err != nil {
		return Identity{}, fmt.Errorf("/user: %w", err)
	}
	if user.ID <= 0 || user.Login == "" {
		return Identity{}, fmt.Errorf("/user: %w", errAnswer)
	}
	email, err := g.email(ctx, token.AccessToken)
	if err != nil {
		return Identity{}, err
	}
	return Identity{
		Issuer: g.url, Subject: strconv.FormatInt(user.ID, 10), Name: cmp.Or(user.Name, user.Login),
		Email: email, EmailVerified: email != "",
	}, nil
}

// email returns the verified primary address, or "" if there is none. It also returns "" if GitHub
// responds with 403 or 404, because the person may have reduced the token's scope.
func (g *gitHub) email(ctx context.Context, token string) (string, error) {
	var addresses []struct {
		Email    string `json:"email"`
		Primary  bool   `json:"primary"`
		Verified bool   `json:"verified"`
	}
	err := g.web.getJSON(ctx, g.api+"/user/emails?per_page=100", token, &addresses)
	var answer *statusError
	if errors.As(err, &answer) && !answer.limited &&
		(answer.status == http.StatusForbidden || answer.status == http.StatusNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("/user/emails: %w", err)
	}
	for _, a := range addresses {
		if a.Primary && a.Verified {
			return a.Email, nil
		}
	}
	return "", nil
}
