package instance_test

import (
	"fmt"
	"strings"
	"testing"

	"crier/platform/fault"
	"crier/tests/edgetest"
)

func TestImpersonate_SetsAndClearsCookie(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	json := []string{"Content-Type", "application/json"}
	a := s.Call(t, "POST", "/user/impersonate", fmt.Sprintf(`{"id":%q}`, edgetest.Membership), append(json, "auth", edgetest.InstanceSession)...)
	if c := edgetest.SetCookies(t, a)["impersonate"]; a.Status != 201 || a.Body != "" || c == nil || c.Value != edgetest.Membership || !c.HttpOnly {
		t.Errorf("answered %d %q with %v, want 201, no body, and the cookie", a.Status, a.Body, c)
	}
	a = s.Call(t, "POST", "/user/impersonate", `{"id":""}`, append(json, "auth", edgetest.ImpersonatorSession)...)
	if c := edgetest.SetCookies(t, a)["impersonate"]; a.Status != 201 || c == nil || c.Value != "" || c.MaxAge >= 0 {
		t.Errorf("answered %d with %v, want 201 and the cookie deleted", a.Status, c)
	}
	s.WantCalls(t, "Impersonate "+edgetest.Membership+" true", "Impersonate  false")
	edgetest.Want(t, s.Call(t, "GET", "/user/impersonate?name=ac", "", "auth", edgetest.InstanceSession), 200,
		`"id":"`+edgetest.Membership+`"`, `"role":"ADMIN"`, `"name":"Acme"`, `"subscription":null`, `"email":"ada@example.org"`)
}

func TestEnterprise_AnswersOfContract(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	send := func() edgetest.Answer {
		return s.Call(t, "POST", "/enterprise/create-user", `{"params":"jwt"}`, "Content-Type", "application/json", "Origin", "https://saas.test")
	}
	edgetest.Want(t, send(), 201, `{"id":"`+edgetest.OrgID.String()+`","apiKey":"`+edgetest.APIKey+`"}`)
	s.WantCalls(t, "CreateEnterpriseUser jwt")
	for kind, c := range map[fault.Kind]struct {
		status int
		body   string
	}{
		fault.Invalid: {status: 201, body: `{"success":false}`}, fault.Conflict: {status: 201, body: `{"create":false}`},
		fault.NotFound: {status: 404, body: "no such route"}, fault.Unavailable: {status: 503, body: "later"},
	} {
		s.Fail(fault.New(kind, "fake", "no such route, or later"))
		edgetest.Want(t, send(), c.status, c.body)
	}
	if log := s.Log.String(); strings.Count(log, "enterprise request refused") != 2 {
		t.Errorf("the log is %s, want two warnings", log)
	}
}
