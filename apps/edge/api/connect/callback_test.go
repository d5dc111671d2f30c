package connect_test

import (
	"reflect"
	"testing"

	"crier/platform/fault"
	"crier/publishing"
	"crier/tenancy"
	"crier/tests/edgetest"
)

func TestConnect_ReturnsChannel(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	edgetest.Want(t, s.Call(t, "GET", "/integrations", ""), 200, `"article":[]`, `"identifier":"sandbox"`, `"isExternal":false`,
		`"customFields":[{"key":"name","label":"Name","validation":".+","type":"text"}]`)
	body := `{"state":"st","code":"eyJuYW1lIjoibiJ9","timezone":"60","extra":1}`
	a := s.Call(t, "POST", "/integrations/social-connect/sandbox", body, "Content-Type", "application/json")
	edgetest.Want(t, a, 201, `"identifier":"sandbox"`, `"onboarding":true`, `"pages":[]`, `"inBetweenSteps":false`)
	finished := publishing.FinishConnect{
		Connector: "sandbox", State: "st", Fields: map[string]string{"name": "n"},
		Zone: tenancy.ZoneRequest{Minutes: 60, IsOffset: true},
	}
	if !reflect.DeepEqual(s.Finished, finished) {
		t.Errorf("got the command %+v, want %+v", s.Finished, finished)
	}
	edgetest.Want(t, s.Call(t, "POST", "/integrations/social-connect/sandbox", `{"state":"st","code":"e30","timezone":-330}`, "Content-Type", "application/json"), 201, `"timezone":`)
	if s.Finished.Zone != (tenancy.ZoneRequest{Minutes: -330, IsOffset: true}) {
		t.Errorf("got the zone %+v, want -330 minutes", s.Finished.Zone)
	}
	for _, code := range []string{"*", "Y29kZQ==", "bnVsbA==", "W10="} {
		body := `{"state":"st","code":"` + code + `"}`
		got := s.Call(t, "POST", "/integrations/social-connect/sandbox", body, "Content-Type", "application/json")
		edgetest.Want(t, got, 400, "must be the base64 encoding of a JSON object")
	}
	edgetest.Want(t, s.Call(t, "POST", "/integrations/social-connect/sandbox", `{"code":null}`, "Content-Type", "application/json"), 400, "state is required", "code must be a string")
	s.Err = fault.New(fault.Invalid, "fake", "The state is not known; begin again.")
	edgetest.Want(t, s.Call(t, "POST", "/integrations/social-connect/sandbox", body, "Content-Type", "application/json"), 400, "begin again")
}
