package e2e

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// walk holds the people of TestAccounts_WalkOnTwoProcesses and what they own. They use processes 0
// and 1 in turn, and each effect is read from the other process.
type walk struct {
	*instance
	ada, bob *browser
	// home is the organization that ada registered with. team is the one that she shares with bob.
	home, team string
	factor     *device
	recovery   []string
	homeKey    string // the API key of home
}

func TestAccounts_WalkOnTwoProcesses(t *testing.T) {
	t.Parallel()
	w := &walk{instance: startInstance(t, map[string]string{"PRUNE_INTERVAL": "1s"})}
	w.registerAda(t)
	w.createTeam(t)
	w.inviteBob(t)
	w.changeRole(t)
	w.enrollMFA(t)
	w.logInAgain(t)
	w.rotateKey(t)
	w.handOver(t)
	w.removeAda(t)
	w.deleteAccount(t)
	w.undoDeletion(t)
	w.purge(t)
}

func (w *walk) registerAda(t *testing.T) {
	w.ada = w.browse()
	w.ada.register(t, "ada@example.com", m{"company": "Home", "fullname": "Ada"})
	w.ada.on(1).activate(t, "ada@example.com", 1)
	got := w.ada.self(t)
	if got.Email != "ada@example.com" || got.Role != "SUPERADMIN" || !got.Verified || got.Admin || got.Access != "full" {
		t.Fatalf("got %+v, want the verified owner of an organization, who is no administrator of the instance", got)
	}
	w.home, w.ada.email = got.OrgID, got.Email
}

func (w *walk) createTeam(t *testing.T) {
	var made struct{ ID, Name string }
	w.ada.want(t, http.StatusCreated, &made, http.MethodPost, "/user/organizations", m{"name": "Team"})
	w.team = made.ID
	if got := w.ada.on(1).self(t); got.OrgID != w.team || w.ada.cookies["showorg"] != w.team {
		t.Errorf("got the organization %s on the other process, want the new one %s", got.OrgID, w.team)
	}
	w.wantOrganizations(t, w.ada.on(1), w.home, w.team)
}

func (w *walk) wantOrganizations(t *testing.T, b *browser, want ...string) {
	t.Helper()
	var list []struct{ ID string }
	b.want(t, http.StatusOK, &list, http.MethodGet, "/user/organizations", nil)
	got := []string{}
	for _, o := range list {
		got = append(got, o.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got the organizations %v of %s, want %v", got, b.email, want)
	}
}

func (w *walk) inviteBob(t *testing.T) {
	w.bob = w.account(t, "bob@example.com")
	own := w.bob.org
	w.ada.invite(t, "bob@example.com", "USER", true)
	var open []struct{ ID, Email string }
	w.ada.on(1).want(t, http.StatusOK, &open, http.MethodGet, "/settings/invitations", nil)
	if len(open) != 1 || open[0].Email != "bob@example.com" {
		t.Errorf("got the invitations %v on the other process, want that of bob", open)
	}
	mailed := link(t, w.letter(t, "bob@example.com", "Invitation to", 1))
	if got := w.bob.on(1).join(t, mailed); got != w.team {
		t.Fatalf("got the organization %q, want %s", got, w.team)
	}
	w.wantOrganizations(t, w.bob, own, w.team)
	w.wantMembers(t, w.ada, m{"ada@example.com": "SUPERADMIN", "bob@example.com": "USER"})
	w.ada.want(t, http.StatusOK, &open, http.MethodGet, "/settings/invitations", nil)
	if len(open) != 0 {
		t.Errorf("got the invitations %v, want none after it was used", open)
	}
	w.bob.on(1).want(t, http.StatusCreated, nil, http.MethodPost, "/user/change-org", m{"id": w.team})
	if got := w.bob.self(t); got.OrgID != w.team || got.Role != "USER" {
		t.Errorf("got %+v, want a USER of the team", got)
	}
}

// wantMembers checks the members of the organization of b. want maps their addresses to their
// roles.
func (w *walk) wantMembers(t *testing.T, b *browser, want m) {
	t.Helper()
	var team struct {
		Users []struct {
			Role string
			User struct{ ID, Email string }
		}
	}
	b.want(t, http.StatusOK, &team, http.MethodGet, "/settings/team", nil)
	for _, u := range team.Users {
		if want[u.User.Email] != u.Role {
			t.Errorf("got %s with the role %s, want %v", u.User.Email, u.Role, want)
		}
	}
	if len(team.Users) != len(want) {
		t.Errorf("got the members %v, want %v", team.Users, want)
	}
}

func (w *walk) changeRole(t *testing.T) {
	w.bob.want(t, http.StatusForbidden, nil, http.MethodGet, "/settings/team", nil)
	for _, c := range []struct {
		role string
		want int
	}{{role: "ADMIN", want: http.StatusOK}, {role: "USER", want: http.StatusForbidden}, {role: "ADMIN", want: http.StatusOK}} {
		w.ada.want(t, http.StatusOK, nil, http.MethodPut, "/settings/team/"+w.bob.id+"/role", m{"role": c.role})
		w.bob.on(1).want(t, c.want, nil, http.MethodGet, "/settings/team", nil)
	}
}

func (w *walk) enrollMFA(t *testing.T) {
	w.factor, w.recovery = w.ada.enroll(t)
	if got := w.mfaLeft(t, w.ada.on(1)); got != 10 {
		t.Errorf("got %d recovery codes on the other process, want 10", got)
	}
	w.letter(t, "ada@example.com", "Two-factor login", 1)
}

func (w *walk) mfaLeft(t *testing.T, b *browser) int {
	t.Helper()
	var status struct {
		Enabled           bool
		RecoveryCodesLeft int
	}
	b.want(t, http.StatusOK, &status, http.MethodGet, "/user/mfa/status", nil)
	if !status.Enabled {
		t.Error("got a second factor that is off, want it on")
	}
	return status.RecoveryCodesLeft
}

// logInAgain logs out and in twice, first with a code and then with a recovery code.
func (w *walk) logInAgain(t *testing.T) {
	for _, proof := range []m{{"code": w.factor.code(t)}, {"recoveryCode": w.recovery[0]}} {
		old := w.ada.cookies["auth"]
		w.ada.want(t, http.StatusCreated, nil, http.MethodPost, "/user/logout", nil)
		w.wantSignedOut(t, 1, old)
		step := w.ada.on(1).login(t, "ada@example.com")
		if !step.MFARequired || step.MFAToken == "" || w.ada.cookies["auth"] != "" {
			t.Fatalf("got %+v, want that a code is required and no session", step)
		}
		proof["mfaToken"] = step.MFAToken
		var done signInAnswer
		w.ada.want(t, http.StatusCreated, &done, http.MethodPost, "/auth/mfa/verify", proof)
		if !done.Login {
			t.Fatalf("got %+v, want a session", done)
		}
		w.ada.on(1).self(t)
	}
	if got := w.mfaLeft(t, w.ada.on(1)); got != 9 {
		t.Errorf("got %d recovery codes, want 9", got)
	}
	w.ada.want(t, http.StatusCreated, nil, http.MethodPost, "/user/change-org", m{"id": w.team})
}

// wantSignedOut checks that a session has ended on a process.
func (s *instance) wantSignedOut(t *testing.T, node int, session string) {
	t.Helper()
	b := s.browse().on(node)
	b.cookies["auth"] = session
	a := b.want(t, http.StatusUnauthorized, nil, http.MethodGet, "/user/self", nil)
	if a.Header.Get("logout") != "true" || b.cookies["auth"] != "" {
		t.Errorf("got %v, want the header logout and no cookie", a.Header)
	}
}

func (w *walk) rotateKey(t *testing.T) {
	old, id := w.ada.createKey(t, "Newsletter")
	for node := range w.nodes {
		if got := w.withKey(t, node, old); got != http.StatusOK {
			t.Fatalf("got %d with the new key on process %d, want 200", got, node)
		}
	}
	var made struct{ ID, APIKey string }
	w.ada.want(t, http.StatusCreated, &made, http.MethodPost, "/user/api-key/rotate", m{"id": id})
	rotated := time.Now()
	await(t, "the end of the old key on the other process", rotated.Add(time.Second), func() bool {
		return w.withKey(t, 1, old) == http.StatusUnauthorized
	}, func() string { return "that it still works" })
	if got := w.withKey(t, 1, made.APIKey); got != http.StatusOK {
		t.Errorf("got %d with the key after the rotation, want 200", got)
	}
	if got := w.withKey(t, 0, old); got != http.StatusUnauthorized {
		t.Errorf("got %d with the old key, want 401", got)
	}
}

func (w *walk) handOver(t *testing.T) {
	path := "/settings/team/" + w.bob.id + "/role"
	w.ada.want(t, http.StatusBadRequest, nil, http.MethodPut, path, m{"role": "SUPERADMIN"})
	w.ada.want(t, http.StatusOK, nil, http.MethodPut, path, m{"role": "SUPERADMIN", "password": password})
	if got := w.bob.on(1).self(t); got.Role != "SUPERADMIN" {
		t.Errorf("got the role %s of the new owner on the other process", got.Role)
	}
	if got := w.ada.on(1).self(t); got.OrgID != w.team || got.Role != "ADMIN" {
		t.Errorf("got the role %s of the former owner on the other process, want ADMIN", got.Role)
	}
	w.letter(t, "bob@example.com", "You are now the owner", 1)
}

func (w *walk) removeAda(t *testing.T) {
	w.bob.on(1).want(t, http.StatusOK, nil, http.MethodDelete, "/settings/team/"+w.ada.id, nil)
	w.ada.want(t, http.StatusForbidden, nil, http.MethodPut, "/settings/organization", m{"name": "Mine"})
	if got := w.ada.self(t); got.OrgID != w.home || w.ada.cookies["showorg"] != "" {
		t.Errorf("got the organization %s and the cookie %q, want her own", got.OrgID, w.ada.cookies["showorg"])
	}
	w.wantOrganizations(t, w.ada, w.home)
	w.wantMembers(t, w.bob, m{"bob@example.com": "SUPERADMIN"})
}

func (w *walk) deleteAccount(t *testing.T) {
	w.homeKey, _ = w.ada.createKey(t, "Home")
	if got := w.withKey(t, 1, w.homeKey); got != http.StatusOK {
		t.Fatalf("got %d with the key, want 200", got)
	}
	session := w.ada.cookies["auth"]
	w.ada.want(t, http.StatusBadRequest, nil, http.MethodPost, "/settings/delete-account", m{"password": "wrong", "confirm": "DELETE"})
	w.ada.want(t, http.StatusCreated, nil, http.MethodPost, "/settings/delete-account", m{"password": password, "confirm": "DELETE"})
	w.wantSignedOut(t, 1, session)
	await(t, "the end of the organization's key", time.Now().Add(time.Second), func() bool {
		return w.withKey(t, 1, w.homeKey) != http.StatusOK
	}, func() string { return "that it still works" })
}

// undoDeletion signs in within the grace period, undoes the deletion, and requests it again.
func (w *walk) undoDeletion(t *testing.T) {
	step := w.ada.on(1).login(t, "ada@example.com")
	var restorable, done signInAnswer
	w.ada.want(t, http.StatusCreated, &restorable, http.MethodPost, "/auth/mfa/verify",
		m{"mfaToken": step.MFAToken, "recoveryCode": w.recovery[1]})
	if !restorable.DeletionRequested || restorable.RestoreToken == "" || w.ada.cookies["auth"] != "" {
		t.Fatalf("got %+v, want that the account will be deleted, and no session", restorable)
	}
	w.ada.want(t, http.StatusCreated, &done, http.MethodPost, "/auth/restore", m{"token": restorable.RestoreToken})
	if got := w.ada.on(1).self(t); !done.Login || got.OrgID != w.home || got.Access != "full" {
		t.Errorf("got %+v, want the account with its organization again", got)
	}
	await(t, "the organization's key", time.Now().Add(lateLimit), func() bool {
		return w.withKey(t, 1, w.homeKey) == http.StatusOK
	}, func() string { return "that it is refused" })
	w.ada.want(t, http.StatusCreated, nil, http.MethodPost, "/settings/delete-account", m{"password": password, "confirm": "DELETE"})
}

// purge restarts the processes with clocks set after the end of the grace period, and checks that
// they delete the account and everything that belongs to it.
func (w *walk) purge(t *testing.T) {
	ahead := buildWithOffset(t)
	for _, n := range w.nodes {
		n.terminate(t)
		n.settings["CRIER_CLOCK_OFFSET"] = "169h"
		n.start(t, ahead)
	}
	of := func(table string) int { return w.count(t, "select count(*) from "+table) }
	await(t, "the purge", time.Now().Add(lateLimit), func() bool {
		return w.count(t, "select count(*) from person where email = 'ada@example.com'") == 0
	}, func() string { return "the account" })
	if got := w.count(t, "select count(*) from organization where id = $1", w.home); got != 0 {
		t.Error("got the organization of the account, want it purged")
	}
	for _, table := range []string{"mfa", "recovery_code", "api_key where name = 'Home'"} {
		if got := of(table); got != 0 {
			t.Errorf("got %d rows of %s, want none", got, table)
		}
	}
	wrong := w.browse().ask(t, http.MethodPost, "/auth/login", m{"email": "ada@example.com", "password": password})
	unknown := w.browse().ask(t, http.MethodPost, "/auth/login", m{"email": "nobody@example.com", "password": password})
	if wrong.Status != http.StatusBadRequest || wrong.Body != unknown.Body {
		t.Errorf("got %v for a purged account and %v for an unknown one, want the same", wrong, unknown)
	}
	if got := w.withKey(t, 1, w.homeKey); got != http.StatusUnauthorized {
		t.Errorf("got %d with the key of a purged organization, want 401", got)
	}
	if step := w.bob.login(t, "bob@example.com"); !step.Login {
		t.Fatalf("got %+v, want that the other person signs in", step)
	}
	w.bob.want(t, http.StatusCreated, nil, http.MethodPost, "/user/change-org", m{"id": w.team})
	w.wantMembers(t, w.bob.on(1), m{"bob@example.com": "SUPERADMIN"})
	again := w.browse()
	again.register(t, "ada@example.com", m{"company": "Home again"})
	again.on(1).activate(t, "ada@example.com", 2)
}

// buildWithOffset builds the binary whose clock is set by CRIER_CLOCK_OFFSET, and returns its path.
func buildWithOffset(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "crier")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "crash", "-o", path, "crier/apps/crier")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the binary: %v\n%s", err, out)
	}
	return path
}
