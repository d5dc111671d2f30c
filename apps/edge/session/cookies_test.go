package session_test

import (
	"strings"
	"testing"

	"crier/tests/edgetest"
)

// TestCookies_HostCookieBeatsPlantedOne sends both cookies in either order, as a browser does after
// another host of the domain has planted one.
func TestCookies_HostCookieBeatsPlantedOne(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	for _, cookies := range []string{
		"auth=" + edgetest.AdminSession + "; __Host-auth=" + edgetest.UserSession,
		"__Host-auth=" + edgetest.UserSession + "; auth=" + edgetest.AdminSession,
		"auth=" + edgetest.AdminSession + "; auth=" + edgetest.OwnerSession + "; __Host-auth=" + edgetest.UserSession,
	} {
		edgetest.Want(t, s.Call(t, "GET", "/settings/api-keys", "", "Cookie", cookies), 403)
		edgetest.Want(t, s.Call(t, "GET", "/user/self", "", "Cookie", cookies), 200)
	}
	edgetest.Want(t, s.Call(t, "GET", "/settings/api-keys", "", "Cookie", "auth="+edgetest.UserSession+"; __Host-auth="+edgetest.AdminSession), 200)
	a := s.Call(t, "GET", "/user/self", "", "Cookie", "auth="+edgetest.UserSession+"; __Host-auth=over")
	edgetest.Want(t, a, 401)
	if got := edgetest.CookieNames(edgetest.SetCookies(t, a)); got != "-__Host-auth -auth" {
		t.Errorf("a session that is over: sets %q, want both deleted", got)
	}
	edgetest.Want(t, s.Call(t, "GET", "/user/self", "", "Cookie", "__Host-auth=over", "auth", edgetest.UserSession), 200)
	// This client does not know the prefix.
	edgetest.Want(t, s.Call(t, "GET", "/user/self", "", "Cookie", "auth="+edgetest.UserSession), 200)
}

func TestCookies_LogoutEndsSessionOfHostCookie(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	a := s.Submit(t, "/user/logout", "", "Cookie", "auth=planted; __Host-auth="+edgetest.UserSession)
	edgetest.Want(t, a, 201)
	if got := edgetest.CookieNames(edgetest.SetCookies(t, a)); got != "-__Host-auth -__Host-impersonate -auth -impersonate -showorg" {
		t.Errorf("sets %q, want all deleted", got)
	}
	if len(s.IDs) != 1 || s.IDs[0] != "logout "+edgetest.UserSession {
		t.Errorf("sessions ended: %q, want that of the host", s.IDs)
	}
}

func TestCookies_PrefixIsNotUsedOnLoopback(t *testing.T) {
	t.Parallel()
	const base = "http://localhost:4000"
	s := edgetest.New(t, map[string]string{"BASE_URL": base})
	edgetest.Want(t, s.Call(t, "GET", "/user/self", "", "Cookie", "__Host-auth="+edgetest.UserSession), 401)
	a := s.Call(t, "POST", "/auth/login", edgetest.LoginBody, "Content-Type", "application/json", "Origin", base)
	if got := edgetest.CookieNames(edgetest.SetCookies(t, a)); got != "auth device" {
		t.Errorf("sets %q, want no prefix over http", got)
	}
}

// TestCookies_PlantedOnesOfBrowsersAreIgnored: current browsers send Sec-Fetch-Site with every
// request over https.
func TestCookies_PlantedOnesOfBrowsersAreIgnored(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	browser := []string{"Sec-Fetch-Site", "same-origin"}
	const finish = `{"code":"c","state":"s"}`
	for cookies, c := range map[string]struct {
		headers       []string
		device, state string
	}{
		"device=planted; oauth_state=planted": {headers: browser},
		"device=planted; oauth_state=planted; __Host-device=own; __Host-oauth_state=own": {
			headers: browser, device: "own", state: "own",
		},
		"device=kept; oauth_state=kept": {device: "kept", state: "kept"}, // not sent by a browser
	} {
		edgetest.Want(t, s.Submit(t, "/auth/oauth/GITHUB/exists", finish, append(c.headers, "Cookie", cookies)...), 201)
		if s.From.Device != c.device {
			t.Errorf("%s: got the device %q, want %q", cookies, s.From.Device, c.device)
		}
		call := strings.Join(strings.Fields("FinishSignIn GITHUB c s "+c.state), " ")
		if got := s.TakeCalls(); len(got) != 1 || strings.Join(strings.Fields(got[0]), " ") != call {
			t.Errorf("%s: calls %q, want %q", cookies, got, call)
		}
	}
	planted := "__Host-auth=" + edgetest.InstanceSession + "; impersonate=" + edgetest.Membership
	a := s.Call(t, "GET", "/user/self", "", append(browser, "Cookie", planted)...)
	if edgetest.Want(t, a, 200); strings.Contains(a.Body, `"impersonate":true`) {
		t.Errorf("a planted impersonate: answered %s, want the administrator", a.Body)
	}
	own := "__Host-auth=" + edgetest.InstanceSession + "; __Host-impersonate=" + edgetest.Membership
	edgetest.Want(t, s.Call(t, "GET", "/user/self", "", append(browser, "Cookie", own)...), 200, `"impersonate":true`)
}
