package github

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestUser_PublicAndPrivate(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	for scope, want := range map[string]string{"user:email": "public", "read:user": "private", "user": "private"} {
		got := r.get(pathUser, r.token(scope))
		user := decodeAs[publicUser](r, got)
		if got.status != http.StatusOK || user.ID != 7 || user.Login != "octocat" || *user.Name != "The Octocat" ||
			user.ViewType != want || strings.Contains(got.body, "two_factor_authentication") != (want == "private") {
			t.Errorf("%s: got %d and %s, want the %s user 7", scope, got.status, got.body, want)
		}
		if !strings.Contains(got.body, `"email":null`) || !strings.Contains(got.body, `"node_id":"MDQ6VXNlcjc="`) {
			t.Errorf("%s: got %s, want the email null, because no address is public", scope, got.body)
		}
		if got.header.Get("X-OAuth-Scopes") != scope {
			t.Errorf("got X-OAuth-Scopes %q, want %q", got.header.Get("X-OAuth-Scopes"), scope)
		}
	}
}

func TestUser_PublicEmailAndRename(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	token := r.token("read:user")
	user := octocat()
	user.Login, user.Name, user.Emails[0].Visibility = "renamed", "", VisibilityPublic
	r.must(r.p.SetUser(user))
	got := decodeAs[publicUser](r, r.get(enterprise+pathUser, token))
	if got.Login != "renamed" || got.Name != nil || got.Email == nil || *got.Email != "octocat@example.org" {
		t.Errorf("got %+v, want the new login, no name and the public email", got)
	}
	if want := r.url + enterprise + "/users/renamed"; got.URL != want {
		t.Errorf("got the URL %s, want %s", got.URL, want)
	}
}

func TestEmails_ListsAddresses(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	token := r.token("user:email")
	want := `[{"email":"octocat@example.org","primary":true,"verified":true,"visibility":"private"},` +
		`{"email":"cat@example.net","primary":false,"verified":false,"visibility":null}]`
	for _, prefix := range []string{"", enterprise} {
		got := r.get(prefix+pathEmails, token)
		if got.status != http.StatusOK || strings.TrimSpace(got.body) != want || got.header.Get("Link") != "" {
			t.Errorf("got %d, %s and Link %q, want %s without Link", got.status, got.body, got.header.Get("Link"), want)
		}
	}
}

func TestEmails_NeedsScope(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	for scope, want := range map[string]int{"read:user": 404, "": 404, "gist": 404, "user": 200, "user:email": 200} {
		got := r.get(pathEmails, r.token(scope))
		if got.status != want || got.header.Get("X-Accepted-OAuth-Scopes") != "user, user:email" {
			t.Errorf("%q: got %d and %v, want %d", scope, got.status, got.header, want)
		}
		if want == 404 && decodeAs[apiError](r, got).Message != "Not Found" {
			t.Errorf("%q: got %s, want the message Not Found", scope, got.body)
		}
	}
}

func TestEmails_Pages(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	user := octocat()
	for i := range 3 {
		user.Emails = append(user.Emails, Email{Email: "more" + strconv.Itoa(i) + "@example.org"})
	}
	r.must(r.p.SetUser(user))
	token := r.token("user:email")
	link := func(page int, rel string) string {
		return "<" + r.url + pathEmails + "?page=" + strconv.Itoa(page) + `&per_page=2>; rel="` + rel + `"`
	}
	for _, c := range []struct {
		query string
		count int
		link  string
	}{
		{"?per_page=2", 2, link(2, "next") + ", " + link(3, "last")},
		{"?per_page=2&page=2", 2, link(1, "prev") + ", " + link(3, "next") + ", " + link(3, "last") + ", " + link(1, "first")},
		{"?per_page=2&page=3", 1, link(2, "prev") + ", " + link(1, "first")},
		{"?per_page=2&page=9", 0, link(3, "prev") + ", " + link(1, "first")},
		{"?per_page=100", 5, ""},
	} {
		got := r.get(pathEmails+c.query, token)
		list := decodeAs[[]emailView](r, got)
		if len(list) != c.count || got.header.Get("Link") != c.link {
			t.Errorf("%s: got %d addresses and Link %q, want %d and %q",
				c.query, len(list), got.header.Get("Link"), c.count, c.link)
		}
	}
	for _, query := range []string{"?per_page=0", "?per_page=101", "?per_page=x", "?page=0", "?page=", "?page=99999999999999999999"} {
		if got := r.get(pathEmails+query, token); got.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: got status %d, want 422", query, got.status)
		}
	}
}

func TestAPI_RefusesCredentials(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	token := r.token("user:email")
	basic := base64.StdEncoding.EncodeToString([]byte("octocat:" + token))
	for header, want := range map[string]struct {
		status  int
		message string
	}{
		"":                {401, "Requires authentication"},
		"Bearer x":        {401, "Bad credentials"},
		"Bearer":          {401, "Bad credentials"},
		"Basic " + basic:  {401, "Bad credentials"},
		"Digest " + token: {401, "Bad credentials"},
		token:             {401, "Bad credentials"},
		"token " + token:  {200, ""},
		"bearer " + token: {200, ""},
	} {
		headers := map[string]string{}
		if header != "" {
			headers["Authorization"] = header
		}
		got := r.send(http.MethodGet, pathEmails, "", headers)
		if got.status != want.status {
			t.Errorf("%.10s: got status %d, want %d", header, got.status, want.status)
			continue
		}
		if want.status == 401 {
			body := decodeAs[apiError](r, got)
			if body.Message != want.message || !strings.HasPrefix(body.DocumentationURL, docsREST) || body.Status != "401" {
				t.Errorf("%.10s: got %+v, want %s", header, body, want.message)
			}
		}
	}
}

func TestAPI_RevokedTokenIsBad(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	token := r.token("user:email")
	code := r.code(nil)
	r.p.Revoke(7)
	if got := r.get(pathUser, token); got.status != http.StatusUnauthorized {
		t.Errorf("got status %d for a revoked token, want 401", got.status)
	}
	if _, got := r.exchange(code, nil); got.Error != "bad_verification_code" {
		t.Errorf("got %+v for a revoked code, want bad_verification_code", got)
	}
}

func TestAPI_RefusesHeaders(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	bearer := "Bearer " + r.token("user:email")
	for name, c := range map[string]struct {
		header, value string
		want          int
	}{
		"no user agent":        {"User-Agent", "", http.StatusForbidden},
		"blank user agent":     {"User-Agent", " ", http.StatusForbidden},
		"unknown version":      {"X-GitHub-Api-Version", "2020-01-01", http.StatusBadRequest},
		"known version":        {"X-GitHub-Api-Version", "2022-11-28", http.StatusOK},
		"unknown media type":   {"Accept", "text/html", http.StatusUnsupportedMediaType},
		"documented type":      {"Accept", "application/vnd.github+json", http.StatusOK},
		"one of several known": {"Accept", "text/html, application/json;q=0.9", http.StatusOK},
	} {
		for _, prefix := range []string{"", enterprise} {
			got := r.send(http.MethodGet, prefix+pathUser, "", map[string]string{"Authorization": bearer, c.header: c.value})
			if got.status != c.want {
				t.Errorf("%s below %q: got status %d, want %d", name, prefix, got.status, c.want)
			}
		}
	}
}

func TestAPI_UnknownPathsAreNotFound(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	bearer := map[string]string{"Authorization": "Bearer " + r.token("user")}
	for _, c := range []struct{ method, path string }{
		{http.MethodGet, "/user/"}, {http.MethodGet, "/user/keys"}, {http.MethodPost, pathEmails},
		{http.MethodGet, "/api/v4/user"}, {http.MethodOptions, pathToken},
	} {
		got := r.send(c.method, c.path, "", bearer)
		if got.status != http.StatusNotFound || decodeAs[apiError](r, got).Message != "Not Found" {
			t.Errorf("%s %s: got %d and %s, want 404", c.method, c.path, got.status, got.body)
		}
	}
}

func TestLimit_RefusesAboveLimitUntilReset(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusForbidden, http.StatusTooManyRequests} {
		r := start(t, Options{RequestsPerHour: 2, LimitStatus: status})
		first, second := r.token("user:email"), r.token("gist")
		r.get(pathUser, first)
		got := r.get(pathUser, second)
		if got.status != http.StatusOK || got.header.Get("X-RateLimit-Remaining") != "0" ||
			got.header.Get("X-RateLimit-Used") != "2" {
			t.Errorf("got %d and %v for the last request, want 200 with none remaining", got.status, got.header)
		}
		got = r.get(pathEmails, first)
		reset, err := strconv.ParseInt(got.header.Get("X-RateLimit-Reset"), 10, 64)
		if got.status != status || err != nil || reset != time.Date(2026, 9, 1, 13, 0, 0, 0, time.UTC).Unix() ||
			got.header.Get("X-RateLimit-Limit") != "2" || got.header.Get("X-RateLimit-Resource") != "core" {
			t.Errorf("got %d and %v above the limit, want %d and the reset in an hour", got.status, got.header, status)
		}
		if body := decodeAs[apiError](r, got); body.Message != "API rate limit exceeded for user ID 7." {
			t.Errorf("got %+v, want the message of the rate limit", body)
		}
		if got := r.get(enterprise+pathUser, first); got.status != http.StatusOK || got.header.Get("X-RateLimit-Limit") != "" {
			t.Errorf("got %d and %v on Enterprise Server, want no limit", got.status, got.header)
		}
		r.advance(time.Hour)
		if got := r.get(pathUser, first); got.status != http.StatusOK || got.header.Get("X-RateLimit-Remaining") != "1" {
			t.Errorf("got %d and %v after the reset, want 200", got.status, got.header)
		}
	}
}

func TestLimit_CountsRequestsWithoutUser(t *testing.T) {
	t.Parallel()
	r := start(t, Options{LimitEnterprise: true})
	for range anonymousPerHour {
		if got := r.get(enterprise+pathUser, "x"); got.status != http.StatusUnauthorized {
			t.Fatalf("got status %d, want 401", got.status)
		}
	}
	got := r.get(enterprise+pathUser, "x")
	if got.status != http.StatusForbidden || decodeAs[apiError](r, got).Message != "API rate limit exceeded for 127.0.0.1." {
		t.Errorf("got %d and %s for request 61, want 403", got.status, got.body)
	}
	if got := r.get(pathUser, r.token("user")); got.status != http.StatusOK {
		t.Errorf("got status %d for a user, want 200", got.status)
	}
}
