package sandboxoauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"crier/platform/outbound"
	"crier/platform/text"
	"crier/publishing/connector"
)

const (
	maxAnswer = 1 << 20 // bytes
	maxRaw    = 300     // bytes of the platform's message in an error
)

// credential is the decoded form of Session.Credential. The sandbox connector also decodes it, but
// uses only Service and AccessToken.
type credential struct {
	Service      string    `json:"service"`
	AccessToken  string    `json:"accessToken"`
	RefreshToken string    `json:"refreshToken"`
	ExpiresAt    time.Time `json:"expiresAt"`
}

func (c *Connector) credentialOf(t token, now time.Time) credential {
	return credential{
		Service: c.url, AccessToken: t.AccessToken, RefreshToken: t.RefreshToken,
		ExpiresAt: now.Add(time.Duration(t.ExpiresIn) * time.Second).UTC().Truncate(time.Second),
	}
}

// parseCredential decodes a credential. It returns KindReauth if the credential cannot be decoded.
func parseCredential(raw json.RawMessage) (credential, error) {
	var cred credential
	if err := json.Unmarshal(raw, &cred); err != nil || cred.Service == "" {
		return cred, &connector.Error{
			Kind: connector.KindReauth, Public: "The stored credentials cannot be read; reconnect the channel.",
		}
	}
	return cred, nil
}

// token is the response from the token endpoint.
type token struct {
	AccessToken  string `json:"access_token"`
	ExpiresIn    int    `json:"expires_in"` // seconds
	RefreshToken string `json:"refresh_token"`
	Scope        string `json:"scope"`
}

type page struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Grade     string `json:"grade"`
	MaxLength int    `json:"maxLength"`
	Picture   string `json:"picture"`
}

// client calls one sandbox. access is the access token. If access is "", no token is sent.
type client struct {
	http   connector.HTTP
	base   string
	access string
}

// client returns a client for the sandbox at base. It uses the connector's own HTTP client only if
// base is the connector's own URL.
func (c *Connector) client(guarded connector.HTTP, base string) client {
	if c.http != nil && base == c.url {
		guarded = c.http
	}
	return client{http: guarded, base: base}
}

func (cl client) get(ctx context.Context, path string, out any) error {
	return cl.do(ctx, http.MethodGet, path, "", http.NoBody, out)
}

func (cl client) post(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return cl.do(ctx, http.MethodPost, path, "application/json", bytes.NewReader(body), out)
}

// token calls the token endpoint. If the sandbox rejects the request, token returns KindContent
// with an RFC 6749 error code. If the application credentials are wrong, token returns
// KindOperator.
func (cl client) token(ctx context.Context, app connector.App, form url.Values) (token, error) {
	form.Set("client_id", app.ClientID)
	form.Set("client_secret", app.Secret)
	var out token
	body := strings.NewReader(form.Encode())
	err := cl.do(ctx, http.MethodPost, "/api/oauth/token", "application/x-www-form-urlencoded", body, &out)
	var e *connector.Error
	if errors.As(err, &e) && e.Code == "invalid_client" {
		e.Kind, e.Public = connector.KindOperator, "The platform refuses the application's credentials."
	}
	if err == nil && (out.AccessToken == "" || out.RefreshToken == "" || out.ExpiresIn <= 0) {
		err = unusable(nil)
	}
	return out, err
}

// refused sets the kind and the public message of err if the sandbox rejected a code or a refresh
// token.
func refused(err error, kind connector.Kind, public string) error {
	var e *connector.Error
	if errors.As(err, &e) && e.Code == "invalid_grant" {
		e.Kind, e.Public = kind, public
	}
	return err
}

func (cl client) do(ctx context.Context, method, path, contentType string, body io.Reader, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, cl.base+path, body)
	if err != nil {
		return &connector.Error{Kind: connector.KindOperator, Public: "The sandbox's address cannot be used.", Err: err}
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if cl.access != "" {
		req.Header.Set("Authorization", "Bearer "+cl.access)
	}
	resp, err := cl.http.Do(req)
	if err != nil {
		return connector.FromSend(err, false)
	}
	raw, err := outbound.ReadAll(resp, maxAnswer)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return refusal(resp, raw)
	}
	if err != nil {
		return unusable(err)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return unusable(err)
	}
	return nil
}

// refusal returns the error for an unsuccessful response. The body may be in the API's error format
// or the RFC 6749 format.
func refusal(resp *http.Response, raw []byte) *connector.Error {
	var view struct {
		Error       json.RawMessage `json:"error"`
		Description string          `json:"error_description"`
	}
	var inner struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	// if the body cannot be decoded, the code stays empty and the author becomes ByOther
	_ = json.Unmarshal(raw, &view)
	if json.Unmarshal(view.Error, &inner.Code) != nil {
		_ = json.Unmarshal(view.Error, &inner)
	} else {
		inner.Message = view.Description
	}
	author := connector.ByPlatform
	if inner.Code == "" {
		author = connector.ByOther
	}
	e := connector.FromStatus(resp, author, false)
	e.Code, e.Raw = inner.Code, text.Line(inner.Message, maxRaw)
	if e.Kind == connector.KindContent {
		e.Public = "The sandbox refuses this: " + e.Raw
	}
	return e
}

// unusable returns the error for a successful response whose body cannot be used. err may be nil.
func unusable(err error) error {
	return &connector.Error{
		Kind: connector.KindTransient, Status: http.StatusOK, Err: err,
		Public: "The sandbox's response cannot be read.",
	}
}
