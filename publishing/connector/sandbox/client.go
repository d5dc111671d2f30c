package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"crier/platform/outbound"
	"crier/platform/text"
	"crier/publishing/connector"
)

const (
	maxAnswer = 4 << 20 // bytes
	maxRaw    = 300     // bytes of the platform's message in an error
)

// credential is the decoded form of Session.Credential, which the engine stores encrypted.
type credential struct {
	Service      string `json:"service"`
	Name         string `json:"name"`
	Password     string `json:"password"`
	AccessToken  string `json:"accessToken"`
	RefreshToken string `json:"refreshToken"`
}

// session is the platform's response to a sign-in or a refresh.
type session struct {
	AccessToken  string `json:"accessToken"`
	RefreshToken string `json:"refreshToken"`
	Account      struct {
		ID        string `json:"id"`
		Name      string `json:"name"`
		Grade     string `json:"grade"`
		MaxLength int    `json:"maxLength"`
		Picture   string `json:"picture"`
	} `json:"account"`
}

// client calls one sandbox. token is the access token, or "" before sign-in.
type client struct {
	http  connector.HTTP
	base  string
	token string
}

// open returns a client for a session, and the session's credential. It returns KindReauth if the
// credential cannot be decoded.
func (c *Connector) open(s *connector.Session) (client, credential, error) {
	var cred credential
	if err := json.Unmarshal(s.Credential, &cred); err != nil || cred.Service == "" {
		return client{}, cred, &connector.Error{
			Kind: connector.KindReauth, Public: "The stored credentials cannot be read; reconnect the channel.",
		}
	}
	return client{http: c.httpFor(cred.Service, s.HTTP), base: cred.Service, token: cred.AccessToken}, cred, nil
}

func (cl client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, cl.base+path, body)
	if err != nil {
		return nil, &connector.Error{
			Kind: connector.KindContent, Public: "The sandbox's address cannot be used.", Err: err,
		}
	}
	if cl.token != "" {
		req.Header.Set("Authorization", "Bearer "+cl.token)
	}
	return req, nil
}

func (cl client) postRequest(ctx context.Context, path string, in any) (*http.Request, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, &connector.Error{
			Kind: connector.KindContent, Public: "This post cannot be written as JSON.", Err: err,
		}
	}
	req, err := cl.request(ctx, http.MethodPost, path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

func (cl client) post(ctx context.Context, path string, in, out any) error {
	req, err := cl.postRequest(ctx, path, in)
	if err != nil {
		return err
	}
	return cl.do(req, out)
}

func (cl client) get(ctx context.Context, path string, out any) error {
	req, err := cl.request(ctx, http.MethodGet, path, http.NoBody)
	if err != nil {
		return err
	}
	return cl.do(req, out)
}

// do sends a request that can be repeated, and decodes the response into out.
func (cl client) do(req *http.Request, out any) error {
	resp, err := cl.http.Do(req)
	return decode(resp, err, out, false)
}

// commit sends the irreversible request that publishes a post, and decodes the response into out.
func (cl client) commit(req *http.Request, out any) error {
	resp, err := cl.http.Commit(req)
	return decode(resp, err, out, true)
}

// decode decodes a response into out, which may be nil. If sending the request failed, err is the
// error.
func decode(resp *http.Response, err error, out any, committing bool) error {
	if err != nil {
		return connector.FromSend(err, committing)
	}
	body, err := outbound.ReadAll(resp, maxAnswer)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		// the status is enough, even if the body could not be read
		return refusal(resp, body, committing)
	}
	if err != nil {
		return unreadable(resp, err, committing)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return unreadable(resp, err, committing)
	}
	return nil
}

// refusal returns the error for an unsuccessful response. If the body is in the sandbox's error
// format, the response was written by the sandbox and not by another server.
func refusal(resp *http.Response, body []byte, committing bool) *connector.Error {
	var view struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	author := connector.ByPlatform
	if json.Unmarshal(body, &view) != nil || view.Error.Code == "" {
		author = connector.ByOther
	}
	e := connector.FromStatus(resp, author, committing)
	e.Code, e.Raw = view.Error.Code, text.Line(view.Error.Message, maxRaw)
	return e
}

// unreadable returns the error for a successful response whose body cannot be read. During a
// commit, the error is KindUnknown because the post may have been published.
func unreadable(resp *http.Response, err error, committing bool) *connector.Error {
	e := &connector.Error{
		Kind: connector.KindTransient, Status: resp.StatusCode,
		Public: "The sandbox's response cannot be read.", Err: err,
	}
	if committing {
		e.Kind = connector.KindUnknown
	}
	return e
}
