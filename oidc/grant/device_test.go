package grant_test

import (
	"strings"
	"testing"
	"time"

	"crier/oidc"
	"crier/platform/fault"
	"crier/tenancy"
	"crier/tests/tenant"
)

func (r *rig) device() oidc.Device {
	r.Helper()
	d, err := r.Grants.StartDevice(r.Context(), r.client.ClientID, oidc.AllScopes(), tenancy.Source{Site: "192.0.2.1"})
	must(r.T, err)
	return d
}

func TestDevice_LogsIn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	d := r.device()
	if len(d.UserCode) != 9 || d.UserCode[4] != '-' || !strings.HasPrefix(d.Code, oidc.DevicePrefix) {
		t.Errorf("got the codes %q and %q", d.UserCode, d.Code)
	}
	_, err := r.Grants.PollDevice(t.Context(), d.Code)
	r.wantCode("the first poll", err, oidc.AuthorizationPending)
	_, err = r.Grants.PollDevice(t.Context(), d.Code)
	r.wantCode("a poll too early", err, oidc.SlowDown)
	r.advance(d.Interval)
	_, err = r.Grants.PollDevice(t.Context(), d.Code)
	r.wantCode("a poll after the first interval", err, oidc.SlowDown)
	r.advance(time.Minute)
	_, err = r.Grants.PollDevice(t.Context(), d.Code)
	r.wantCode("a poll in time", err, oidc.AuthorizationPending)
	asked, err := r.Grants.DeviceRequest(t.Context(), r.owner, " "+strings.ToLower(strings.ReplaceAll(d.UserCode, "-", " ")))
	if err != nil || asked.Client.ID != r.client.ID || !asked.Scopes.Writes() || asked.Resource != baseURL+"/mcp" {
		t.Errorf("got the request %+v, %v", asked, err)
	}
	consent := oidc.Consent{Scopes: oidc.Scopes{oidc.ScopeRead}, Limits: oidc.Limits{MustAsk: true}}
	must(t, r.Grants.AnswerDevice(t.Context(), r.owner, d.UserCode, &consent))
	if err := r.Grants.AnswerDevice(t.Context(), r.owner, d.UserCode, &consent); !fault.Is(err, fault.NotFound) {
		t.Errorf("a second answer: %v, want NotFound", err)
	}
	got, err := r.Grants.PollDevice(t.Context(), d.Code)
	must(t, err)
	p := r.wantToken("the token", got.Access, "")
	if p.Agent.Write || p.Agent.Limits == nil || !p.Agent.Limits.MustAsk || p.Person != r.owner.Person {
		t.Errorf("got the principal %+v", p)
	}
	r.refresh(got.Refresh)
	_, err = r.Grants.PollDevice(t.Context(), d.Code)
	r.wantCode("a poll after the end", err, oidc.ExpiredToken)
}

func TestDevice_Refusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.Grants.StartDevice(t.Context(), "unknown", oidc.AllScopes(), tenancy.Source{Site: "192.0.2.1"})
	r.wantCode("an unknown client", err, oidc.InvalidClient)
	denied, expired := r.device(), r.device()
	must(t, r.Grants.AnswerDevice(t.Context(), r.owner, denied.UserCode, nil))
	_, err = r.Grants.PollDevice(t.Context(), denied.Code)
	r.wantCode("a denied log-in", err, oidc.AccessDenied)
	_, err = r.Grants.PollDevice(t.Context(), oidc.DevicePrefix+"x")
	r.wantCode("an unknown code", err, oidc.ExpiredToken)
	r.advance(oidc.DeviceLife)
	_, err = r.Grants.PollDevice(t.Context(), expired.Code)
	r.wantCode("an expired log-in", err, oidc.ExpiredToken)
	if _, err := r.Grants.DeviceRequest(t.Context(), r.owner, expired.UserCode); !fault.Is(err, fault.NotFound) {
		t.Errorf("an expired code: %v, want NotFound", err)
	}
}

func TestDevice_GuessesAreLimited(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	d := r.device()
	limited := 0
	for range 30 {
		switch _, err := r.Grants.DeviceRequest(t.Context(), r.owner, "BBBB-BBBB"); {
		case fault.Is(err, fault.RateLimited):
			limited++
		case !fault.Is(err, fault.NotFound):
			t.Errorf("a wrong code: %v, want NotFound", err)
		}
	}
	if limited != 20 {
		t.Errorf("%d of 30 guesses were refused, want 20", limited)
	}
	if err := r.Grants.AnswerDevice(t.Context(), r.owner, d.UserCode, nil); !fault.Is(err, fault.RateLimited) {
		t.Errorf("the right code after too many: %v, want RateLimited", err)
	}
	other := tenant.Join(t, r.db, r.owner.Org, tenancy.RoleUser)
	if _, err := r.Grants.DeviceRequest(t.Context(), other, d.UserCode); err != nil {
		t.Errorf("another person: %v", err)
	}
}
