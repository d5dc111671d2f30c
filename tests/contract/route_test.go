package contract

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"crier/apps/edge"
)

func TestRoute_UnusualRequestsAreAnswered(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	o := r.organization(t)
	o.prefix = ""
	methods := []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT2", "get"}
	twist := []func(string) string{
		func(p string) string { return p }, func(p string) string { return p + "/" }, func(p string) string { return p + "//" }, func(p string) string { return "/" + p },
		func(p string) string { return strings.ToUpper(p) }, func(p string) string { return p + "/x/y/z" }, func(p string) string { return p + "%2f" }, func(p string) string { return p + "%00" },
		func(p string) string { return p + "?" + strings.Repeat("a=1&", 200) }, func(p string) string { return p + "?page=%zz&limit=%00" }, func(p string) string { return p + ";x=1" }, func(p string) string { return "/." + p + "/.." },
	}
	for _, route := range edge.Routes() {
		if !strings.Contains(route.Path, "public/v1") || route.State == edge.Planned {
			continue
		}
		for i, change := range twist {
			for j, method := range methods {
				if i > 0 && j > 5 {
					continue
				}
				a := o.do(t, method, change(filled(route.Path, "x")), nil, "Content-Type", "application/xml")
				if a.Status >= 500 && a.Status != http.StatusNotImplemented {
					t.Errorf("%s %s: %v", method, change(route.Path), a)
				}
				if a.Status >= 400 && method != "HEAD" && a.Header.Get("Content-Type") != "application/json" {
					t.Errorf("%s %s answers %s: %v", method, change(route.Path), a.Header.Get("Content-Type"), a)
				}
			}
		}
		stranger := o
		stranger.key = ""
		stranger.do(t, route.Method, filled(route.Path, "x"), nil).refusal(t, http.StatusUnauthorized)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	o := r.organization(t)
	c := o.channel(t, "A")
	medium := o.upload(t, "cat.png", png(t)).want(t, 201).object(t)
	o.reaches(t, o.create(t, now(c.id, part("<p>shown & <u>escaped</u> <script>alert(1)</script></p>", medium), part("its reply"))), "PUBLISHED")
	o.prefix, o.key = "", ""
	for _, path := range []string{"/docs", "/sandbox/"} {
		a := o.get(t, path).want(t, http.StatusOK)
		if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") || a.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Fatalf("%s: %v", path, a.Header)
		}
		page(t, o, path, a)
	}
	if a := o.get(t, "/sandbox/"); !strings.Contains(a.Body, "shown &amp; escaped") || !strings.Contains(a.Body, "its reply") {
		t.Fatalf("the post is not shown: %v", a)
	}
	if a := o.get(t, "/sandbox").want(t, http.StatusFound); a.Header.Get("Location") != "/sandbox/" {
		t.Fatalf("%v", a.Header)
	}
}

// page checks that nothing on a page violates its policy, and that every link has a target.
func page(t *testing.T, o org, path string, a answer) {
	t.Helper()
	policy := a.Header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Fatalf("%s has the policy %q", path, policy)
	}
	root, err := html.Parse(strings.NewReader(a.Body))
	if err != nil {
		t.Fatal(err)
	}
	ids, links := map[string]bool{}, map[string]string{}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "script" || n.Data == "iframe" || n.Data == "object" || n.Data == "form" {
			t.Errorf("%s has a %s", path, n.Data)
		}
		if n.Data == "style" && !strings.Contains(policy, "style-src 'sha256-") {
			t.Errorf("%s has a style that its policy %q forbids", path, policy)
		}
		for _, at := range n.Attr {
			switch {
			case at.Key == "id":
				ids[at.Val] = true
			case at.Key == "href" || at.Key == "src":
				links[at.Val] = n.Data
			case strings.HasPrefix(at.Key, "on") || at.Key == "style":
				t.Errorf("%s has %s=%q", path, at.Key, at.Val)
			}
		}
	}
	if len(links) < 3 {
		t.Fatalf("%s has %d links", path, len(links))
	}
	for link, element := range links {
		follow(t, o, path, link, element, ids)
	}
}

func follow(t *testing.T, o org, path, link, element string, ids map[string]bool) {
	t.Helper()
	if anchor, ok := strings.CutPrefix(link, "#"); ok {
		if name, err := url.PathUnescape(anchor); err != nil || !ids[name] {
			t.Errorf("%s links to %s, which does not exist", path, link)
		}
		return
	}
	if strings.Contains(link, "://") || strings.HasPrefix(link, "//") {
		t.Errorf("%s links to another site: %s (%s)", path, link, element)
		return
	}
	from, err := url.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	to, err := from.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	if b := o.get(t, to.String()); b.Status != http.StatusOK {
		t.Errorf("%s links to %s (%s): %d", path, link, element, b.Status)
	}
}
