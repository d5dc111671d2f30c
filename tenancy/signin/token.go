package signin

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/client/rp"
	"github.com/zitadel/oidc/v3/pkg/oidc"

	"crier/platform/secret"
)

// skew is how far an issuer's clock may be ahead of or behind ours.
const skew = 5 * time.Minute

// algorithms lists the signature algorithms accepted in an id_token. Only the issuer can create
// these signatures. HS256 is excluded, because anybody with the client secret can create an HS256
// signature.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
	jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// claims contains the id_token claims that are checked or used.
type claims struct {
	Issuer          string    `json:"iss"`
	Subject         string    `json:"sub"`
	Audience        audience  `json:"aud"`
	AuthorizedParty string    `json:"azp"`
	Expiry          oidc.Time `json:"exp"`
	IssuedAt        oidc.Time `json:"iat"`
	NotBefore       oidc.Time `json:"nbf"`
	Nonce           string    `json:"nonce"`
	AccessTokenHash string    `json:"at_hash"`
	profile
}

// profile contains the claims about a person in an id_token or from the userinfo endpoint.
type profile struct {
	Email string `json:"email"`
	// Verified is nil if the issuer does not state whether the address is verified.
	Verified *flag  `json:"email_verified"`
	Name     string `json:"name"`
}

// flag is a JSON boolean. Some issuers send the boolean as a string, which is also accepted. Any
// other value is false.
type flag bool

// UnmarshalJSON sets the flag. It always returns nil.
func (f *flag) UnmarshalJSON(data []byte) error {
	*f = string(data) == "true" || string(data) == `"true"`
	return nil
}

// audience is a JSON string or an array of strings.
type audience []string

// UnmarshalJSON sets the audience. It returns an error if a value is not a string.
func (a *audience) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '[' {
		return json.Unmarshal(data, (*[]string)(a))
	}
	*a = make(audience, 1)
	return json.Unmarshal(data, &(*a)[0])
}

// verify returns the claims of an id_token that the issuer signed for this client and this sign-in.
// It does not use the verifier in package rp, because that verifier adds the accepted skew to the
// current time before it checks exp. The verifier in rp would therefore reject every token that is
// valid for only a minute, and some issuers create such tokens.
func (i *issuer) verify(ctx context.Context, m metadata, raw, accessToken, nonce string) (claims, error) {
	token, err := jose.ParseSignedCompact(raw, algorithms)
	if err != nil {
		return claims{}, refused("there is no id_token with a permitted signature")
	}
	payload, err := i.payload(ctx, token)
	if err != nil {
		return claims{}, err
	}
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return claims{}, refused("the claims of the id_token are not valid JSON")
	}
	if reason := i.reject(m, c, nonce); reason != "" {
		return claims{}, refused(reason)
	}
	if err := checkTimes(c, i.clock.Now()); err != nil {
		return claims{}, err
	}
	_, algorithm := oidc.GetKeyIDAndAlg(token)
	if err := rp.VerifyAccessToken(accessToken, c.AccessTokenHash, jose.SignatureAlgorithm(algorithm)); err != nil {
		return claims{}, refused("the id_token belongs to another access token")
	}
	return c, nil
}

// payload verifies the token's signature and returns the signed content. If no cached key matches,
// payload fetches the keys once more, because the issuer may have signed with a newer key.
func (i *issuer) payload(ctx context.Context, token *jose.JSONWebSignature) ([]byte, error) {
	keys, err := i.keys.get(ctx)
	if err != nil {
		return nil, err
	}
	if payload, ok := open(token, keys); ok {
		return payload, nil
	}
	keys, err = i.keys.refresh(ctx)
	if err != nil {
		return nil, err
	}
	if payload, ok := open(token, keys); ok {
		return payload, nil
	}
	return nil, refused("the id_token is not signed with a key of the issuer")
}

func open(token *jose.JSONWebSignature, keys []jose.JSONWebKey) ([]byte, bool) {
	keyID, algorithm := oidc.GetKeyIDAndAlg(token)
	key, err := oidc.FindMatchingKey(keyID, oidc.KeyUseSignature, algorithm, keys...)
	if err != nil {
		return nil, false
	}
	payload, err := token.Verify(&key)
	return payload, err == nil
}

// reject returns the reason why the claims do not prove who is signing in, or "" if they do (OpenID
// Connect Core section 3.1.3.7). It does not check times; see checkTimes.
func (i *issuer) reject(m metadata, c claims, nonce string) string {
	switch {
	case !m.isNamed(c.Issuer):
		return "the id_token is from another issuer"
	case !slices.Contains(c.Audience, i.id):
		return "the id_token is for another client"
	case c.AuthorizedParty != "" && c.AuthorizedParty != i.id, c.AuthorizedParty == "" && len(c.Audience) > 1:
		return "the id_token was issued to another client"
	case c.Expiry == 0 || c.IssuedAt == 0:
		return "the id_token has no issue time or no expiry time"
	case !secret.Equal(c.Nonce, secret.Text(nonce)):
		return "the id_token is for another sign-in"
	}
	return ""
}

// checkTimes returns a clockError if an id_token is not yet valid or has expired. The issuer
// created the token for this sign-in only a moment ago, so its issue time shows how far the
// issuer's clock is from ours.
func checkTimes(c claims, now time.Time) error {
	issued, begins, ends := c.IssuedAt.AsTime(), c.NotBefore.AsTime(), c.Expiry.AsTime()
	if issued.After(now.Add(skew)) {
		return newClockError(issued, now)
	}
	if c.NotBefore != 0 && begins.After(now.Add(skew)) {
		return newClockError(begins, now)
	}
	if now.Before(ends.Add(skew)) {
		return nil
	}
	if issued.Before(ends) {
		return newClockError(issued, now)
	}
	return newClockError(ends, now)
}

// isNamed reports whether iss names the issuer. Google also documents its issuer without the
// scheme, so isNamed accepts that form for Google.
func (m metadata) isNamed(iss string) bool {
	return iss == m.Issuer || m.Issuer == googleIssuer && "https://"+iss == googleIssuer
}
