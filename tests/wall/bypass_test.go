package wall

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"crier/apps/edge"
)

// bypass makes a service look as if it lacked one of its checks: it replaces the credentials of
// each request with credentials that pass the check.
type bypass struct {
	next http.RoundTripper
	// headers are pairs of names and values; an empty value removes the header.
	headers []string
}

func (h bypass) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for i := 0; i+1 < len(h.headers); i += 2 {
		r.Header.Del(h.headers[i])
		if h.headers[i+1] != "" {
			r.Header.Set(h.headers[i], h.headers[i+1])
		}
	}
	return h.next.RoundTrip(r)
}

func routeOf(t *testing.T, name string) edge.Route {
	t.Helper()
	routes := edge.Routes()
	i := slices.IndexFunc(routes, func(r edge.Route) bool { return r.String() == name })
	if i < 0 {
		t.Fatalf("there is no route %s", name)
	}
	return routes[i]
}

// wantSurprise fails the test unless a message begins with the text.
func wantSurprise(t *testing.T, wrong []string, text string) {
	t.Helper()
	if !slices.ContainsFunc(wrong, func(s string) bool { return strings.HasPrefix(s, text) }) {
		t.Errorf("got %q, want a message that begins with %q", wrong, text)
	}
}

// TestRoutes_MissingCheckIsReported removes each kind of check from one route.
func TestRoutes_MissingCheckIsReported(t *testing.T) {
	t.Parallel()
	table, w := readPermissions(t), newWorld(t)
	as := func(who caller) []string { return []string{"auth", w.accounts[who].session} }
	withKey := func(who caller) []string { return []string{"Authorization", w.keys[who]} }
	for name, c := range map[string]struct {
		route   string
		who     caller
		headers []string
		want    string
	}{
		"a session":                     {route: "GET /settings/team", who: "nobody", headers: as("owner"), want: "answered with 200, want 401"},
		"a session on an unbuilt route": {route: "POST /posts/rewrite", who: "nobody", headers: as("owner"), want: "answered with 501, want 401"},
		"the end of a session":          {route: "GET /user/self", who: "expired", headers: as("user"), want: "answered with 200, want 401"},
		"the role of a user":            {route: "PUT /settings/organization", who: "user", headers: as("owner"), want: "answered with 200, want 403"},
		"the role of an administrator":  {route: "POST /settings/delete-organization", who: "admin", headers: as("owner"), want: "answered with 400, want 403"},
		"the rank of a member":          {route: "DELETE /settings/team/{id}", who: "user", headers: as("admin"), want: "answered with 200, want 403"},
		"the instance administrator":    {route: "GET /user/impersonate", who: "owner", headers: as("instance"), want: "answered with 200, want 403"},
		"the personal route": {
			route: "POST /settings/api-keys", who: "acting", headers: append(as("owner"), "impersonate", ""), want: "answered with 201, want 403",
		},
		"the membership of a reader":  {route: "GET /settings/organization", who: "intruder", headers: as("owner"), want: `reveals "Firstling Works"`},
		"the choice of a writer":      {route: "PUT /settings/organization", who: "intruder", headers: []string{"showorg", ""}, want: "answered with 200, want 403"},
		"the end of a membership":     {route: "GET /settings/organization", who: "removed", headers: as("user"), want: "answered with 200, want 403"},
		"the suspension of a session": {route: "GET /settings/organization", who: "suspended", headers: as("other"), want: "answered with 200, want 403"},
		"the second factor":           {route: "POST /posts/rewrite", who: "unenrolled", headers: as("other"), want: "answered with 501, want 403"},
		"a key":                       {route: "GET /public/v1/is-connected", who: "nobody", headers: withKey("key"), want: "answered with 200, want 401"},
		"the revocation of a key":     {route: "GET /public/v1/posts", who: "revokedkey", headers: withKey("key"), want: "answered with 200, want 401"},
		"the suspension of a key":     {route: "GET /api/public/v1/posts", who: "suspendedkey", headers: withKey("otherkey"), want: "answered with 200, want 403"},
		"the owner of a post":         {route: "GET /public/v1/posts/{id}", who: "otherkey", headers: withKey("key"), want: "answered with 200, want 404"},
		"the token of the operator": {
			route: "GET /monitor/queue/{name}", who: "owner", headers: []string{"X-Monitor-Token", monitorToken}, want: "answered with 200, want 403",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := routeOf(t, c.route)
			if _, wrong := w.call(t, table, r, c.who); len(wrong) > 0 {
				t.Fatalf("with every check: got %q, want no surprise", wrong)
			}
			whole := w.http.Transport
			w.http.Transport = bypass{next: whole, headers: c.headers}
			_, wrong := w.call(t, table, r, c.who)
			w.http.Transport = whole
			text := fmt.Sprintf("%s as %s is ", r, c.who)
			if strings.HasPrefix(c.want, "reveals") {
				text = fmt.Sprintf("%s as %s ", r, c.who)
			}
			wantSurprise(t, wrong, text+c.want)
		})
	}
}

// TestRoutes_DroppedPolicyIsReported replaces policies of the database with policies that let every
// organization pass. Both the calls and the catalogue must show it.
func TestRoutes_DroppedPolicyIsReported(t *testing.T) {
	t.Parallel()
	table, w := readPermissions(t), newWorld(t)
	for _, c := range []struct {
		policy, route string
		who           caller
		want          string
		changes       bool
	}{
		{policy: "audit", route: "GET /settings/audit", who: "other", want: "reveals"},
		{policy: "invitation", route: "GET /settings/invitations", who: "intruder", want: `reveals "` + w.ids["/settings/invitations/"]},
		{policy: "invitation", route: "DELETE /settings/invitations/{id}", who: "other", want: "is answered with 200, want 404", changes: true},
		{policy: "api_key", route: "GET /settings/api-keys", who: "other", want: `reveals "firstling`},
		{policy: "api_key", route: "DELETE /settings/api-keys/{id}", who: "instance", want: "is answered with 200, want 404", changes: true},
		{policy: "member", route: "DELETE /settings/team/{id}", who: "other", want: "is answered with 200, want 404", changes: true},
		{policy: "channel", route: "GET /public/v1/integrations", who: "otherkey", want: "reveals"},
	} {
		r := routeOf(t, c.route)
		shared := found(t, w.super)
		fault := "the tenants' policy of " + c.policy + " is not the wall's"
		if has(shared, fault) == "" {
			if _, wrong := w.call(t, table, r, c.who); len(wrong) > 0 {
				t.Fatalf("with every policy: got %q, want no surprise", wrong)
			}
			w.exec(t, fmt.Sprintf(`drop policy tenant on %[1]s; create policy tenant on %[1]s to crier_tenant using (true) with check (true)`, c.policy))
		}
		if got := found(t, w.super); has(got, fault) == "" {
			t.Errorf("the catalogue reports %q, want %q", got, fault)
		}
		before := w.rows(t)
		_, wrong := w.call(t, table, r, c.who)
		wantSurprise(t, wrong, fmt.Sprintf("%s as %s %s", r, c.who, c.want))
		if changed := w.rows(t) != before; changed != c.changes {
			t.Errorf("%s as %s: the first organization has changed: %v, want %v", r, c.who, changed, c.changes)
		}
	}
}

// has returns the first message that contains the text, or "".
func has(messages []string, text string) string {
	for _, message := range messages {
		if strings.Contains(message, text) {
			return message
		}
	}
	return ""
}
