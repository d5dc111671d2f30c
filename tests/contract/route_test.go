package contract

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"crier/apps/edge"
	"crier/apps/edge/docs"
)

func TestRoute_UnusualRequestsAreAnswered(t *testing.T) {
	t.Parallel()
	r := common(t)
	o := r.organization(t)
	o.prefix = ""
	methods := []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT2", "get"}
	// unusual returns a path and unusual forms of it.
	unusual := func(p string) []string {
		return []string{
			p, p + "/", p + "//", "/" + p, strings.ToUpper(p), p + "/x/y/z", p + "%2f", p + "%00",
			p + "?" + strings.Repeat("a=1&", 200), p + "?page=%zz&limit=%00", p + ";x=1", "/." + p + "/..",
		}
	}
	for _, route := range edge.Routes() {
		if !strings.Contains(route.Path, "public/v1") || route.State == edge.Planned {
			continue
		}
		for i, path := range unusual(filled(route.Path, "x")) {
			for j, method := range methods {
				if i > 0 && j > 5 {
					continue
				}
				a := o.do(t, method, path, nil, "Content-Type", "application/xml")
				if a.Status >= 500 && a.Status != http.StatusNotImplemented {
					t.Errorf("%s %s is answered with %v, want no failure", method, path, a)
				}
				kind := a.Header.Get("Content-Type")
				if a.Status >= 400 && method != "HEAD" && kind != "application/json" {
					t.Errorf("%s %s is refused with the type %s, want application/json: %v", method, path, kind, a)
				}
			}
		}
		if route.Path == docs.PublicDocumentPath {
			continue // needs no key
		}
		stranger := o
		stranger.key = ""
		stranger.do(t, route.Method, filled(route.Path, "x"), nil).refusal(t, http.StatusUnauthorized)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	r := start(t, map[string]string{"API_LIMIT": "4321", "ORG_MAX_WEBHOOKS": "37", "MAX_IMAGE_BYTES": "2097152"})
	o := r.organization(t)
	c := o.channel(t, "A")
	cat := o.stored(t, "cat.png", png(t))
	const markup = "<p>shown & <u>escaped</u> <script>alert(1)</script></p>"
	o.reaches(t, o.create(t, now(c.id, part(markup, cat), part("its reply"))), "PUBLISHED")
	o.prefix, o.key = "", ""
	for _, path := range append(docPages(), "/sandbox/") {
		a := o.get(t, path).want(t, http.StatusOK)
		kind, options := a.Header.Get("Content-Type"), a.Header.Get("X-Content-Type-Options")
		if !strings.HasPrefix(kind, "text/html") || options != "nosniff" {
			t.Fatalf("%s has the headers %v, want text/html and nosniff", path, a.Header)
		}
		page(t, o, path, a)
	}
	limits := o.get(t, "/docs/limits")
	for _, value := range []string{"<b>4,321</b> per minute", "<b>37</b>", "<b>2 MiB</b>"} {
		if !strings.Contains(limits.Body, value) {
			t.Errorf("the page of limits has no %s, want the configuration of the instance", value)
		}
	}
	shown := o.get(t, "/sandbox/")
	for _, text := range []string{"shown &amp; escaped", "its reply"} {
		if !strings.Contains(shown.Body, text) {
			t.Fatalf("the sandbox shows %v, want %q in it", shown, text)
		}
	}
	if got := o.get(t, "/sandbox").want(t, http.StatusFound).Header.Get("Location"); got != "/sandbox/" {
		t.Fatalf("/sandbox redirects to %q, want /sandbox/", got)
	}
}

// docPages returns the addresses of the pages of the documentation.
func docPages() (out []string) {
	for _, name := range docs.Pages() {
		out = append(out, strings.TrimSuffix("/docs/"+name, "/"))
	}
	return out
}

// page checks that nothing on a page violates the page's policy, and that every link has a target.
func page(t *testing.T, o org, path string, a answer) {
	t.Helper()
	policy := a.Header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Fatalf("%s has the policy %q, want default-src 'none' and nothing unsafe", path, policy)
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
			t.Errorf("%s has a %s, want none", path, n.Data)
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
				t.Errorf("%s has %s=%q, want no script or style in attributes", path, at.Key, at.Val)
			}
		}
	}
	if len(links) < 3 {
		t.Fatalf("%s has %d links, want at least 3", path, len(links))
	}
	for link, element := range links {
		follow(t, o, path, link, element, ids)
	}
}

// follow checks that a link leads to an element of the page or to another page of the service.
func follow(t *testing.T, o org, path, link, element string, ids map[string]bool) {
	t.Helper()
	if anchor, ok := strings.CutPrefix(link, "#"); ok {
		if name, err := url.PathUnescape(anchor); err != nil || !ids[name] {
			t.Errorf("%s links to %s, which does not exist", path, link)
		}
		return
	}
	if strings.Contains(link, "://") || strings.HasPrefix(link, "//") {
		manual := path == "/docs/using" || strings.Count(path, "/") == 3
		if manual && element == "a" {
			return // the manual names other sites in its text
		}
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
	b := o.get(t, to.String())
	if b.Status != http.StatusOK {
		t.Errorf("%s links to %s (%s), which is answered with %d, want 200", path, link, element, b.Status)
	}
	if to.Fragment != "" && !strings.Contains(b.Body, `id="`+to.Fragment+`"`) {
		t.Errorf("%s links to %s, whose page has no such element", path, link)
	}
}
