package channel

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"time"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/publishing"
	channelstore "crier/publishing/channel/store"
)

// codeLife is how long a held code waits for the person's consent. Few platforms accept an older
// code.
const codeLife = 10 * time.Minute

// codeBound is the context to which the Keyring binds tokens made by HoldCode.
const codeBound = "code of a connect"

// Started returns the connection attempt with the given state, without using up the state. It
// returns Invalid if neither Finish nor ChooseByState would find the attempt.
func (s *Channels) Started(ctx context.Context, platform, state string) (publishing.ConnectRequest, error) {
	const op = "publishing.StartedConnect"
	st, err := channelstore.PeekState(ctx, s.db, secret.HashToken(state))
	if pg.IsNoRows(err) || err == nil && st.Connector != platform {
		return publishing.ConnectRequest{}, unknownState(op)
	}
	if err != nil {
		return publishing.ConnectRequest{}, pg.Fault(op, err)
	}
	out := publishing.ConnectRequest{
		Org: st.Org, Organization: st.Organization, Platform: platform, By: st.By(), KeyName: st.KeyName,
		KeyCreator: st.Creator, ReturnURL: st.ReturnURL,
	}
	if c, ok := s.deps.Connectors.Get(platform); ok {
		out.Platform = c.Describe().Name
	}
	if st.Candidates == nil {
		return out, nil
	}
	return out, pg.Fault(op, json.Unmarshal(st.Candidates, &out.Candidates))
}

func unknownState(op string) error {
	return fault.New(fault.Invalid, op,
		"This connection attempt is unknown, has been used, or is older than an hour; start over.")
}

// heldCode is the content of a token made by HoldCode.
type heldCode struct {
	Connector string    `json:"connector"`
	State     string    `json:"state"`
	Code      string    `json:"code"`
	Until     time.Time `json:"until"`
}

// HoldCode seals the code of an OAuth connection attempt in a token for ReleaseCode. It uses up
// neither the state nor the code. The person who started the attempt knows the state, but only the
// browser that the platform redirected knows the code.
func (s *Channels) HoldCode(cmd publishing.FinishConnect) (string, error) {
	token, err := s.sealToken(codeBound, heldCode{
		Connector: cmd.Connector, State: cmd.State, Code: cmd.Code, Until: s.deps.Clock.Now().Add(codeLife),
	})
	return token, pg.Fault("publishing.HoldCode", err)
}

// ReleaseCode returns the contents of a token made by HoldCode. It returns Invalid if the token is
// invalid or older than ten minutes.
func (s *Channels) ReleaseCode(platform, token string) (publishing.FinishConnect, error) {
	var held heldCode
	if !s.openToken(codeBound, token, &held) || held.Connector != platform || !s.deps.Clock.Now().Before(held.Until) {
		return publishing.FinishConnect{}, fault.New(fault.Invalid, "publishing.ReleaseCode",
			"This page has expired, so nothing was connected; start over.")
	}
	return publishing.FinishConnect{Connector: held.Connector, State: held.State, Code: held.Code}, nil
}

// sealToken encodes value as a token that can be opened only by openToken with the same bound.
func (s *Channels) sealToken(bound string, value any) (string, error) {
	plain, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	sealed, err := s.deps.Keyring.Seal(plain, bound)
	return base64.RawURLEncoding.EncodeToString(sealed), err
}

// openToken decodes a token and stores its value in into. It returns false if the token was not
// made by sealToken with the same bound.
func (s *Channels) openToken(bound, token string, into any) bool {
	sealed, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return false
	}
	plain, err := s.deps.Keyring.Open(sealed, bound)
	return err == nil && json.Unmarshal(plain, into) == nil
}
