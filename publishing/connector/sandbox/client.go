package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"crier/platform/outbound"
	"crier/publishing/connector"
)

const (
	maxAnswer = 4 << 20 // bytes
	maxRaw    = 300     // bytes of the platform's words in an error
)

// credential is what the engine seals.
type credential struct {
	Service      string `json:"service"`
	Name         string `json:"name"`
	Password     string `json:"password"`
	AccessToken  string `json:"accessToken"`
	RefreshToken string `json:"refreshToken"`
}

// session is the platform's answer to a sign-in.
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

// client calls one sandbox, with the access token if there is one.
type client struct {
	http  connector.HTTP
	base  string
	token string
}

func (c *Connector) open(s *connector.Session) (client, credential, error) {
	var cred credential
	if err := json.Unmarshal(s.Credential, &cred); err != nil || cred.Service == "" {
		return client{}, cred, &connector.Error{Kind: connector.KindReauth, Public: "The stored access cannot be read; reconnect the channel."}
	}
	return client{c.way(cred.Service, s.HTTP), cred.Service, cred.AccessToken}, cred, nil
}

func (cl client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, cl.base+path, body)
	if err != nil {
		return nil, &connector.Error{Kind: connector.KindContent, Public: "The sandbox's address cannot be used.", Err: err}
	}
	if cl.token != "" {
		req.Header.Set("Authorization", "Bearer "+cl.token)
	}
	return req, nil
}

func (cl client) postRequest(ctx context.Context, path string, in any) (*http.Request, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, &connector.Error{Kind: connector.KindContent, Public: "This post cannot be written as JSON.", Err: err}
	}
	req, err := cl.request(ctx, http.MethodPost, path, bytes.NewReader(body))
	if err == nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, err
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

// do makes a call that may be repeated.
func (cl client) do(req *http.Request, out any) error {
	resp, err := cl.http.Do(req)
	return read(resp, err, out, false)
}

// commit makes the irreversible call.
func (cl client) commit(req *http.Request, out any) error {
	resp, err := cl.http.Commit(req)
	return read(resp, err, out, true)
}

// read decodes an answer into out, which may be nil.
func read(resp *http.Response, err error, out any, committing bool) error {
	if err != nil {
		return connector.FromSend(err, committing)
	}
	body, err := outbound.ReadAll(resp, maxAnswer)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return refusal(resp, body, committing) // the status alone decides, even if the body broke
	}
	if err == nil && out != nil {
		err = json.Unmarshal(body, out)
	}
	if err != nil {
		return unreadable(resp, err, committing)
	}
	return nil
}

func refusal(resp *http.Response, body []byte, committing bool) *connector.Error {
	var said struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	author := connector.ByOther
	if json.Unmarshal(body, &said) == nil && said.Error.Code != "" {
		author = connector.ByPlatform
	}
	e := connector.FromStatus(resp, author, committing)
	e.Code, e.Raw = said.Error.Code, connector.Clean(said.Error.Message, maxRaw)
	return e
}

// unreadable is a success whose words got lost: in a commit the post may well be there.
func unreadable(resp *http.Response, err error, committing bool) *connector.Error {
	e := &connector.Error{Kind: connector.KindTransient, Status: resp.StatusCode, Public: "The sandbox's answer cannot be read.", Err: err}
	if committing {
		e.Kind = connector.KindUnknown
	}
	return e
}
