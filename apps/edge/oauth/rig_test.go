package oauth_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"crier/apps/edge"
	"crier/tests/edgetest"

	"golang.org/x/net/html"
)

// challenge is a valid S256 code challenge.
const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"

// rig is an edge with an OAuth server, which tests use as a browser does.
type rig struct {
	*edgetest.Service
	server *edgetest.OAuthServer
}

func newRig(t *testing.T, change ...func(*edge.Deps)) rig {
	t.Helper()
	s, server := edgetest.NewOAuth(t, nil, change...)
	return rig{Service: s, server: server}
}

// request returns the query of a valid authorization request. changes are pairs of names and
// values; an empty value removes the parameter.
func request(changes ...string) string {
	v := url.Values{
		"client_id": {"ccl_public"}, "redirect_uri": {"https://planner.test/callback?from=crier"}, "response_type": {"code"},
		"state": {"the state"}, "code_challenge": {challenge}, "code_challenge_method": {"S256"},
	}
	for i := 0; i < len(changes); i += 2 {
		v.Set(changes[i], changes[i+1])
		if changes[i+1] == "" {
			v.Del(changes[i])
		}
	}
	return v.Encode()
}

// browse opens a page as a browser with a session, or without one if session is "".
func (r rig) browse(t *testing.T, path, session string, headers ...string) edgetest.Answer {
	t.Helper()
	headers = append([]string{"Accept", "text/html,application/xhtml+xml"}, headers...)
	if session != "" {
		headers = append(headers, "Cookie", "auth="+session)
	}
	a := r.Call(t, "GET", path, "", headers...)
	checkPage(t, path, a)
	return a
}

// submit posts a form as a page of the service does.
func (r rig) submit(t *testing.T, path, session string, fields url.Values, headers ...string) edgetest.Answer {
	t.Helper()
	all := append([]string{
		"Accept", "text/html", "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin",
	}, headers...)
	if session != "" {
		all = append(all, "Cookie", "auth="+session)
	}
	if len(headers) == 0 {
		all = append(all, "Origin", edgetest.BaseURL)
	}
	a := r.Call(t, "POST", path, fields.Encode(), all...)
	checkPage(t, path, a)
	return a
}

// form returns the address and the fields of the only form on a page that has an action field.
func form(t *testing.T, a edgetest.Answer) (action string, fields url.Values) {
	t.Helper()
	fields = url.Values{}
	doc, err := html.Parse(strings.NewReader(a.Body))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		at := map[string]string{}
		for _, each := range n.Attr {
			at[each.Key] = each.Val
		}
		switch {
		case n.Data == "form":
			action = at["action"]
		case n.Data == "input" && (at["type"] != "checkbox" || has(n, "checked")):
			fields.Add(at["name"], at["value"])
		}
	}
	return action, fields
}

func has(n *html.Node, name string) bool {
	for _, each := range n.Attr {
		if each.Key == name {
			return true
		}
	}
	return false
}

var unsafeHTML = regexp.MustCompile(`(?i)<script|javascript:|ZgotmplZ|<img|<iframe| on\w+=`)

// checkPage fails the test if a page could run a script, be framed, be cached, or load anything, or
// if its elements do not nest or its fields have no label.
func checkPage(t *testing.T, name string, a edgetest.Answer) {
	t.Helper()
	if a.Status >= 500 {
		t.Fatalf("%s: answered %d %s", name, a.Status, a.Body)
	}
	if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
		return
	}
	policy := a.Header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("%s: the policy %q lacks %s", name, policy, part)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "script-src") || strings.Contains(policy, "img-src") {
		t.Errorf("%s: the policy is %q, want no scripts and no images", name, policy)
	}
	if a.Header.Get("X-Frame-Options") != "DENY" || a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s: got the headers %v, want DENY and no-store", name, a.Header)
	}
	if found := unsafeHTML.FindString(a.Body); found != "" {
		t.Errorf("%s: the page has %q: %s", name, found, a.Body)
	}
	checkNesting(t, name, a.Body)
}

var void = map[string]bool{"meta": true, "input": true, "br": true}

func checkNesting(t *testing.T, name, body string) {
	t.Helper()
	var open []string
	ids, labels := map[string]bool{}, map[string]bool{}
	z := html.NewTokenizer(strings.NewReader(body))
	for z.Next() != html.ErrorToken {
		token := z.Token()
		at := map[string]string{}
		for _, each := range token.Attr {
			at[each.Key] = each.Val
		}
		switch token.Type {
		case html.StartTagToken:
			if id := at["id"]; id != "" {
				if ids[id] {
					t.Errorf("%s: two elements have the id %s", name, id)
				}
				ids[id] = true
			}
			if token.Data == "label" {
				labels[at["for"]] = true
			}
			if !void[token.Data] {
				open = append(open, token.Data)
			}
		case html.EndTagToken:
			if len(open) == 0 || open[len(open)-1] != token.Data {
				t.Fatalf("%s: </%s> closes %v: %s", name, token.Data, open, body)
			}
			open = open[:len(open)-1]
		}
	}
	for id := range labels {
		if !ids[id] {
			t.Errorf("%s: a label is for %q, which does not exist", name, id)
		}
	}
	if len(open) != 0 {
		t.Errorf("%s: %v stay open", name, open)
	}
}

// location returns the parameters of a redirect's URL, after checking where it leads.
func location(t *testing.T, a edgetest.Answer, want string) url.Values {
	t.Helper()
	return parameters(t, a.Header.Get("Location"), want)
}

func parameters(t *testing.T, address, want string) url.Values {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil || u.Scheme+"://"+u.Host+u.Path != want {
		t.Fatalf("the address is %q (%v), want %s", address, err, want)
	}
	return u.Query()
}

var refresh = regexp.MustCompile(`<meta http-equiv="refresh" content="0;url=([^"]*)">`)

// leadsTo returns the parameters of the URL to which a page leads by both its refresh and its link.
func leadsTo(t *testing.T, a edgetest.Answer, want string) url.Values {
	t.Helper()
	m := refresh.FindStringSubmatch(a.Body)
	if a.Status != http.StatusOK || m == nil || !strings.Contains(a.Body, `<a href="`+m[1]+`">`) {
		t.Fatalf("got %d %s, want a page that leads on by refresh and link", a.Status, a.Body)
	}
	return parameters(t, html.UnescapeString(m[1]), want)
}
