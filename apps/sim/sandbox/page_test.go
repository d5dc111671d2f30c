package sandbox

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func sender(p *Platform) func(method, path, token string, body []byte) *httptest.ResponseRecorder {
	return func(method, path, token string, body []byte) *httptest.ResponseRecorder {
		req := httptest.NewRequest(method, "http://127.0.0.1"+path, bytes.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		p.Handler().ServeHTTP(w, req)
		return w
	}
}

const evil = `<script>alert(1)</script><img src=x onerror=alert(2)>"'&{{.}}`

// links returns the number of times each tag occurs in a page, and the addresses in it.
func links(t *testing.T, page string) (tags map[string]int, addrs []string) {
	t.Helper()
	tags = map[string]int{}
	z := html.NewTokenizer(strings.NewReader(page))
	for z.Next() != html.ErrorToken {
		tok := z.Token()
		if tok.Type != html.StartTagToken && tok.Type != html.SelfClosingTagToken {
			continue
		}
		tags[tok.Data]++
		for _, a := range tok.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
				t.Errorf("the page has <%s %s>, want no scripts or styles in attributes", tok.Data, a.Key)
			}
			if a.Key == "src" || a.Key == "href" {
				addrs = append(addrs, a.Val)
			}
		}
	}
	return tags, addrs
}

func TestPage_EscapesTextsAndWorksUnderPrefix(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{PublicURL: "https://crier.test/sandbox/"})
	tok := r.join("c", "C")
	m := r.upload(tok).text("id")
	text := strings.NewReplacer(`"`, `\"`).Replace(evil)
	made := r.want(201, "POST", "/api/posts", tok, `{"text":"`+text+`","media":[{"id":"`+m+`","alt":"`+text+`"}]}`)
	if want := "https://crier.test/sandbox/?post=" + made.text("id"); made.text("url") != want {
		t.Errorf("the url is %s, want %s", made.text("url"), want)
	}
	r.want(201, "POST", "/api/posts", tok, `{"text":"a reply","replyTo":"`+made.text("id")+`"}`)

	target, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(pr *httputil.ProxyRequest) {
		pr.SetURL(target)
		pr.Out.URL.Path = strings.TrimPrefix(pr.In.URL.Path, "/sandbox")
	}}
	mux := http.NewServeMux()
	mux.Handle("/sandbox/", proxy)
	edge := httptest.NewServer(mux)
	t.Cleanup(edge.Close)
	outside := &rig{t: t, url: edge.URL}

	page := outside.want(200, "GET", "/sandbox/", "", "")
	tags, addrs := links(t, page.raw)
	if tags["script"] != 0 || tags["img"] != 3 || strings.Contains(page.raw, "<script") {
		t.Errorf("the tags are %v, want no script and 3 img", tags)
	}
	if !strings.Contains(page.raw, "&lt;script&gt;alert(1)&lt;/script&gt;") || !strings.Contains(page.raw, gradeC.Explain()) || !strings.Contains(page.raw, `class="reply"`) {
		t.Error("the page lacks a text, a grade or a reply:\n" + page.raw)
	}
	if csp := page.header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("the Content-Security-Policy is %q, want default-src 'none' and nothing unsafe", csp)
	}
	for _, a := range addrs {
		if regexp.MustCompile(`^(/|[a-z]+:)`).MatchString(a) {
			t.Errorf("the address %q is not relative", a)
		}
		if strings.HasPrefix(a, "#") {
			continue
		}
		u, err := url.Parse(edge.URL + "/sandbox/")
		if err != nil {
			t.Fatal(err)
		}
		u, err = u.Parse(a)
		if err != nil {
			t.Fatal(err)
		}
		got := outside.want(200, "GET", u.RequestURI(), "", "")
		if got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s has no nosniff header", a)
		}
		if strings.HasPrefix(a, "media/") && (got.header.Get("Content-Type") != "image/png" || got.raw != string(dot(t))) {
			t.Errorf("%s: got %v, want the uploaded PNG", a, got.header)
		}
	}
}

func TestPage_ShowsTheChosenAccountOrThread(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	one, two := r.join("one", "C"), r.join("two", "E")
	if page := r.want(200, "GET", "/", "", "").raw; !strings.Contains(page, "Nothing has been published yet.") {
		t.Error("a page without posts has no message about that")
	}
	root := r.want(201, "POST", "/api/posts", one, `{"text":"first words"}`).text("id")
	r.want(201, "POST", "/api/posts", two, `{"text":"second words"}`)
	r.want(201, "POST", "/api/posts", one, `{"text":"third words","replyTo":"`+root+`"}`)
	r.want(201, "POST", "/api/posts", one, `{"text":"fourth words"}`)
	gone := r.want(201, "POST", "/api/posts", one, `{"text":"deleted words"}`).text("id")
	r.want(204, "DELETE", "/api/posts/"+gone, one, "")
	for path, want := range map[string]string{
		"/":              "fourth first third second",
		"/?account=one":  "fourth first third",
		"/?account=two":  "second",
		"/?post=" + root: "first third",
	} {
		words := []string{}
		for _, m := range regexp.MustCompile(`(\w+) words`).FindAllStringSubmatch(r.want(200, "GET", path, "", "").raw, -1) {
			words = append(words, m[1])
		}
		if got := strings.Join(words, " "); got != want {
			t.Errorf("%s shows %q, want %q", path, got, want)
		}
	}
}

func TestPage_ShowsAtMostPagePosts(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir(), Options{})
	tok := r.join("c", "C")
	for range pagePosts + 5 {
		r.want(201, "POST", "/api/posts", tok, aPost)
	}
	page := r.want(200, "GET", "/", "", "").raw
	if n := strings.Count(page, "<article"); n != pagePosts || !strings.Contains(page, "Older posts are kept") {
		t.Errorf("the page shows %d posts, want %d and a message about older ones", n, pagePosts)
	}
}
