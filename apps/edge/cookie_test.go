package edge_test

import (
	"strings"
	"testing"
)

// TestCookies_PlantedOneLosesToThatOfTheHost sends what a browser sends after another host of the
// domain has planted cookies: both cookies, in either order.
func TestCookies_PlantedOneLosesToThatOfTheHost(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, cookies := range []string{
		"auth=" + adminSession + "; __Host-auth=" + goodSession,
		"__Host-auth=" + goodSession + "; auth=" + adminSession,
		"auth=" + adminSession + "; auth=" + ownerSession + "; __Host-auth=" + goodSession,
	} {
		want(t, s.call(t, "GET", "/settings/api-keys", "", "Cookie", cookies), 403)
		want(t, s.call(t, "GET", "/user/self", "", "Cookie", cookies), 200)
	}
	want(t, s.call(t, "GET", "/settings/api-keys", "", "Cookie", "auth="+goodSession+"; __Host-auth="+adminSession), 200)
	a := s.call(t, "GET", "/user/self", "", "Cookie", "auth="+goodSession+"; __Host-auth=over")
	want(t, a, 401)
	if got := names(setCookies(t, a)); got != "-__Host-auth -auth" {
		t.Errorf("a session that is over: sets %q, want both deleted", got)
	}
	want(t, s.call(t, "GET", "/user/self", "", "Cookie", "__Host-auth=over", "auth", goodSession), 200)
	want(t, s.call(t, "GET", "/user/self", "", "Cookie", "auth="+goodSession), 200) // a client that does not know the prefix
}

func TestCookies_LogoutEndsTheSessionOfTheHost(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	a := s.open(t, "/user/logout", "", "Cookie", "auth=planted; __Host-auth="+goodSession)
	want(t, a, 201)
	if got := names(setCookies(t, a)); got != "-__Host-auth -__Host-impersonate -auth -impersonate -showorg" {
		t.Errorf("sets %q, want all deleted", got)
	}
	if len(s.ids) != 1 || s.ids[0] != "logout "+goodSession {
		t.Errorf("sessions ended: %q, want that of the host", s.ids)
	}
}

func TestCookies_PrefixMeansNothingOnLoopback(t *testing.T) {
	t.Parallel()
	const base = "http://localhost:4000"
	s := start(t, map[string]string{"BASE_URL": base})
	want(t, s.call(t, "GET", "/user/self", "", "Cookie", "__Host-auth="+goodSession), 401)
	a := s.call(t, "POST", "/auth/login", goodLogin, "Content-Type", "application/json", "Origin", base)
	if got := names(setCookies(t, a)); got != "auth device" {
		t.Errorf("sets %q, want no prefix over http", got)
	}
}

// TestCookies_BrowserProvesNothingByAPlantedOne: current browsers send Sec-Fetch-Site with every request over https.
func TestCookies_BrowserProvesNothingByAPlantedOne(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
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
		"device=kept; oauth_state=kept": {device: "kept", state: "kept"}, // a program that keeps cookies
	} {
		want(t, s.open(t, "/auth/oauth/GITHUB/exists", finish, append(c.headers, "Cookie", cookies)...), 201)
		if s.from.Device != c.device {
			t.Errorf("%s: got the device %q, want %q", cookies, s.from.Device, c.device)
		}
		call := strings.Join(strings.Fields("FinishSignIn GITHUB c s "+c.state), " ")
		if got := s.called(); len(got) != 1 || strings.Join(strings.Fields(got[0]), " ") != call {
			t.Errorf("%s: calls %q, want %q", cookies, got, call)
		}
	}
	planted := "__Host-auth=" + instanceSession + "; impersonate=" + membership
	a := s.call(t, "GET", "/user/self", "", append(browser, "Cookie", planted)...)
	if want(t, a, 200); strings.Contains(a.body, `"impersonate":true`) {
		t.Errorf("a planted impersonate: answered %s, want the administrator", a.body)
	}
	own := "__Host-auth=" + instanceSession + "; __Host-impersonate=" + membership
	want(t, s.call(t, "GET", "/user/self", "", append(browser, "Cookie", own)...), 200, `"impersonate":true`)
}
