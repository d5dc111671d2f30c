package e2e

import (
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// admin runs "crier admin" with the instance's settings and returns its output.
func (s *instance) admin(t *testing.T, input string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"admin"}, args...)...)
	for name, v := range s.nodes[0].settings {
		cmd.Env = append(cmd.Env, name+"="+v)
	}
	cmd.Stdin = strings.NewReader(input)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("crier admin %v: %v\n%s", args, err, errs.String())
	}
	return string(out)
}

// printed returns the password that an operator's command printed.
func printed(t *testing.T, out string) string {
	t.Helper()
	found := regexp.MustCompile(`password is (\S{20})\n`).FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("got the output %q, want a password", out)
	}
	return found[1]
}

// loginStatus logs in with a password in a new browser and returns the status.
func (s *instance) loginStatus(t *testing.T, email, password string) int {
	t.Helper()
	return s.browse().ask(t, http.MethodPost, "/auth/login", m{"email": email, "password": password}).Status
}

func TestAdmin_ManagesPeopleOfRunningService(t *testing.T) {
	t.Parallel()
	s := startInstance(t, map[string]string{"REGISTRATION": "invite"})
	out := s.admin(t, "", "create", "ops@example.com", "--admin", "--organization", "Operators", "--name", "Ops")
	first := printed(t, out)
	root := s.browse()
	root.want(t, http.StatusCreated, nil, http.MethodPost, "/auth/login", m{"email": "ops@example.com", "password": first})
	if got := root.on(1).self(t); !got.Admin || got.Role != "SUPERADMIN" {
		t.Errorf("got %+v, want an administrator of the instance who owns an organization", got)
	}
	s.admin(t, "a password of my own\n", "create", "zoe@example.com", "--password-stdin")
	zoe := s.browse()
	zoe.want(t, http.StatusCreated, nil, http.MethodPost, "/auth/login",
		m{"email": "zoe@example.com", "password": "a password of my own"})
	if got := zoe.self(t); got.Admin {
		t.Error("got an administrator of the instance, want none without --admin")
	}

	session := zoe.cookies["auth"]
	second := printed(t, s.admin(t, "", "reset-password", "zoe@example.com"))
	if got := s.loginStatus(t, "zoe@example.com", "a password of my own"); got != http.StatusBadRequest {
		t.Errorf("log-in with the old password: got %d, want 400", got)
	}
	s.wantSignedOut(t, 1, session)
	zoe.want(t, http.StatusCreated, nil, http.MethodPost, "/auth/login", m{"email": "zoe@example.com", "password": second})

	var begun struct{ Secret string }
	zoe.want(t, http.StatusCreated, &begun, http.MethodPost, "/user/mfa/begin", m{"password": second})
	factor := &device{secret: begun.Secret}
	zoe.want(t, http.StatusCreated, nil, http.MethodPost, "/user/mfa/confirm", m{"code": factor.code(t)})
	session = zoe.cookies["auth"]
	s.admin(t, "", "reset-mfa", "zoe@example.com")
	s.wantSignedOut(t, 0, session)
	var step signInAnswer
	zoe.want(t, http.StatusCreated, &step, http.MethodPost, "/auth/login", m{"email": "zoe@example.com", "password": second})
	if !step.Login {
		t.Errorf("got %+v after reset-mfa, want a session", step)
	}
	for _, subject := range []string{"password", "Two-factor login"} {
		s.letter(t, "zoe@example.com", subject, 1)
	}

	s.admin(t, "", "grant", "zoe@example.com")
	if got := zoe.on(1).self(t); !got.Admin {
		t.Error("got no administrator after grant")
	}
	s.admin(t, "", "grant", "zoe@example.com", "--end")
	zoe.on(1).want(t, http.StatusForbidden, nil, http.MethodGet, "/user/impersonate?name=a", nil)
	events := s.admin(t, "", "events")
	for _, subject := range []string{"ops@example.com", "zoe@example.com"} {
		if !strings.Contains(events, subject) {
			t.Errorf("got the events\n%s\nwant %s among them", events, subject)
		}
	}
	for _, secret := range []string{first, second, "a password of my own"} {
		if strings.Contains(events, secret) {
			t.Error("the events contain a password")
		}
	}
}

func TestAdmin_SuspendedOrganizationStopsWithinASecond(t *testing.T) {
	t.Parallel()
	s := common(t)
	ada := s.account(t, "ada@suspended.example")
	key, _ := ada.createKey(t, "Newsletter")
	for node := range s.nodes {
		if got := s.withKey(t, node, key); got != http.StatusOK {
			t.Fatalf("got %d with the key on process %d, want 200", got, node)
		}
	}
	if list := s.admin(t, "", "organizations"); !regexp.MustCompile(ada.org + `\s+\S+\s+active\s+Of ada@suspended.example`).MatchString(list) {
		t.Errorf("got the list\n%s\nwant the active organization", list)
	}
	s.admin(t, "", "suspend", ada.org)
	suspended := time.Now()
	for node := range s.nodes {
		await(t, "the refusal of the key", suspended.Add(time.Second), func() bool {
			return s.withKey(t, node, key) == http.StatusForbidden
		}, func() string { return "that it works" })
	}
	ada.want(t, http.StatusForbidden, nil, http.MethodGet, "/settings/organization", nil)
	if got := ada.on(1).self(t); got.Access != "suspended" {
		t.Errorf("got the access %q, want suspended", got.Access)
	}
	if list := s.admin(t, "", "organizations"); !regexp.MustCompile(ada.org + `\s+\S+\s+suspended`).MatchString(list) {
		t.Errorf("got the list\n%s\nwant the suspended organization", list)
	}
	s.admin(t, "", "resume", ada.org)
	resumed := time.Now()
	for node := range s.nodes {
		await(t, "the key after resume", resumed.Add(time.Second), func() bool {
			return s.withKey(t, node, key) == http.StatusOK
		}, func() string { return "that it is refused" })
	}
	ada.want(t, http.StatusOK, nil, http.MethodGet, "/settings/organization", nil)
	var actions []string
	for _, e := range ada.audit(t) {
		if e.Via == "instance" {
			actions = append(actions, e.Action)
		}
	}
	if len(actions) != 2 {
		t.Errorf("got the entries %v of the operator in the audit log, want those of suspend and resume", actions)
	}
}

func TestAdmin_ImpersonationReadsNoSecretsAndIsAudited(t *testing.T) {
	t.Parallel()
	s := common(t)
	ada := s.account(t, "ada@impersonated.example")
	_, keyID := ada.createKey(t, "Newsletter")
	s.admin(t, password+"\n", "create", "ops@impersonated.example", "--admin", "--password-stdin")
	root := s.browse()
	root.login(t, "ops@impersonated.example")
	root.self(t)

	var found []struct {
		ID   string
		User struct{ Email string }
	}
	root.want(t, http.StatusOK, &found, http.MethodGet, "/user/impersonate?name=ada@impersonated", nil)
	if len(found) != 1 || found[0].User.Email != "ada@impersonated.example" {
		t.Fatalf("got the memberships %+v, want that of ada", found)
	}
	ada.want(t, http.StatusForbidden, nil, http.MethodPost, "/user/impersonate", m{"id": found[0].ID})
	ada.cookies["impersonate"] = found[0].ID // honored only for administrators of the instance
	if got := ada.self(t); got.Impersonate {
		t.Error("got an impersonation by the cookie alone")
	}
	delete(ada.cookies, "impersonate")

	root.want(t, http.StatusCreated, nil, http.MethodPost, "/user/impersonate", m{"id": found[0].ID})
	as := root.on(1).self(t)
	if as.Email != "ada@impersonated.example" || as.OrgID != ada.org || !as.Impersonate || as.Admin {
		t.Errorf("got %+v, want the person who is impersonated", as)
	}
	root.want(t, http.StatusOK, nil, http.MethodPut, "/settings/organization", m{"description": "By the operator"})
	for _, c := range personal(keyID) {
		want := http.StatusForbidden
		if c.path == "/settings/delete-account" {
			want = http.StatusBadRequest
		}
		if got := root.on(1).ask(t, c.method, c.path, c.body); got.Status != want {
			t.Errorf("%s %s while acting as somebody else: got %v, want %d", c.method, c.path, got, want)
		}
	}
	s.letter(t, "ada@impersonated.example", "used your account", 1)
	entries := ada.on(1).audit(t)
	i := slices.IndexFunc(entries, func(e auditEntry) bool {
		return e.Behind == "ops@impersonated.example" && e.Actor == "ada@impersonated.example"
	})
	if i < 0 {
		t.Errorf("got the audit log %+v, want an entry of ada with ops behind", entries)
	}
	begun := slices.ContainsFunc(entries, func(e auditEntry) bool { return strings.Contains(e.Action, "impersonat") })
	if !begun {
		t.Errorf("got the audit log %+v, want the beginning of the impersonation", entries)
	}
	root.want(t, http.StatusCreated, nil, http.MethodPost, "/user/impersonate", m{"id": ""})
	if got := root.on(1).self(t); got.Email != "ops@impersonated.example" || got.Impersonate {
		t.Errorf("got %+v after the end, want the administrator", got)
	}
}

// unsafeCall is a request that changes something.
type unsafeCall struct {
	method, path string
	body         any
}

// personal returns requests that reveal or change the secrets of a person or an organization.
func personal(key string) []unsafeCall {
	proof := m{"password": password}
	return []unsafeCall{
		{http.MethodPost, "/settings/api-keys", m{"name": "Mine"}},
		{http.MethodPost, "/user/api-key/rotate", m{"id": key}},
		{http.MethodPost, "/settings/team", m{"email": "", "role": "ADMIN", "sendEmail": false}},
		{http.MethodPost, "/user/change-password", m{"oldPassword": password, "newPassword": "another good password"}},
		{http.MethodPost, "/user/change-email", m{"email": "mine@example.com", "password": password}},
		{http.MethodPost, "/user/mfa/begin", proof},
		{http.MethodPost, "/user/mfa/disable", proof},
		{http.MethodPost, "/user/mfa/recovery-codes", m{"code": "123456"}},
		{http.MethodPut, "/user/mfa/policy", m{"required": false}},
		{http.MethodDelete, "/user/sessions", nil},
		{http.MethodPost, "/settings/delete-account", m{"password": password, "confirm": "DELETE"}},
		{http.MethodPost, "/settings/delete-organization", m{"password": password, "confirm": "DELETE"}},
		{http.MethodGet, "/user/sessions", nil},
	}
}
