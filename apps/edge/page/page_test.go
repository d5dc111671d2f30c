package page_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/page"
	"crier/platform/fault"
)

const css = "p{color:red}"

var files = fstest.MapFS{
	"head.html":   {Data: []byte(`{{define "head"}}<style>{{style}}</style>{{end}}`)},
	"hello.html":  {Data: []byte(`{{template "head"}}<p>{{.}}</p>`)},
	"other.html":  {Data: []byte(`{{template "head"}}<h1>{{.}}</h1>`)},
	"failed.html": {Data: []byte(`{{.Nothing}}`)},
}

// serve sends one request to a handler and returns the response and its body.
func serve(t *testing.T, handler fiber.Handler, headers ...string) (*http.Response, string) {
	t.Helper()
	app := fiber.New(fiber.Config{ErrorHandler: func(c *fiber.Ctx, err error) error {
		return c.Status(http.StatusInternalServerError).SendString(err.Error())
	}})
	app.Get("/", handler)
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := app.Test(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

func wantHeaders(t *testing.T, got http.Header, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got.Get(name) != value {
			t.Errorf("%s is %q, want %q", name, got.Get(name), value)
		}
	}
}

func hashed(style string) string {
	sum := sha256.Sum256([]byte(style))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func TestSend_HasTheHeadersOfAPage(t *testing.T) {
	t.Parallel()
	p := page.New(files, "hello.html", page.Images(page.Self), page.Style(css), page.Forms(page.Self, "https://app.test"))
	resp, body := serve(t, func(c *fiber.Ctx) error { return p.Send(c, http.StatusConflict, "<b>") })
	if want := "<style>" + css + "</style><p>&lt;b&gt;</p>"; resp.StatusCode != http.StatusConflict || body != want {
		t.Errorf("got %d %s, want 409 %s", resp.StatusCode, body, want)
	}
	wantHeaders(t, resp.Header, map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
		"X-Content-Type-Options": "nosniff", "X-Robots-Tag": "noindex, nofollow",
		"Content-Security-Policy": "default-src 'none'; img-src 'self'; style-src " + hashed(css) +
			"; form-action 'self' https://app.test; base-uri 'none'; frame-ancestors 'none'",
	})
}

func TestSetHeaders_ProtectARedirect(t *testing.T) {
	t.Parallel()
	p := page.New(files, "hello.html", page.Forms(page.Self))
	resp, _ := serve(t, func(c *fiber.Ctx) error {
		p.SetHeaders(c)
		return c.Redirect("next", http.StatusSeeOther)
	})
	wantHeaders(t, resp.Header, map[string]string{
		"Location": "next", "Cache-Control": "no-store", "X-Robots-Tag": "noindex, nofollow",
		"Content-Security-Policy": "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	})
}

func TestNamed_KeepsNeeds(t *testing.T) {
	t.Parallel()
	p := page.New(files, "hello.html", page.Style(css)).Named("other.html")
	resp, body := serve(t, func(c *fiber.Ctx) error { return p.Send(c, http.StatusOK, "Hi") })
	if want := "<style>" + css + "</style><h1>Hi</h1>"; body != want {
		t.Errorf("got %s, want %s", body, want)
	}
	if policy := resp.Header.Get("Content-Security-Policy"); !strings.Contains(policy, hashed(css)) {
		t.Errorf("the policy %q does not allow the style", policy)
	}
}

func TestPage_InvalidTemplatesAreInternal(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]*page.Page{
		"a template that does not parse":   page.New(fstest.MapFS{"x.html": {Data: []byte("{{if}}")}}, "x.html"),
		"a template that is missing":       page.New(files, "nowhere.html"),
		"a template that fails":            page.New(files, "failed.html"),
		"a folder without templates":       page.New(fstest.MapFS{}, "x.html"),
		"another template of broken files": page.New(fstest.MapFS{}, "x.html").Named("y.html"),
	} {
		if _, err := p.Asset("text"); !fault.Is(err, fault.Internal) {
			t.Errorf("%s: the asset is %v, want Internal", name, err)
		}
		if resp, body := serve(t, func(c *fiber.Ctx) error { return p.Send(c, http.StatusOK, "text") }); resp.StatusCode != 500 {
			t.Errorf("%s: got %d %s, want 500", name, resp.StatusCode, body)
		}
	}
}

func TestPolicy_KeepsOrderOfNeeds(t *testing.T) {
	t.Parallel()
	const end = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	for want, needs := range map[string][]page.Need{
		"default-src 'none'; " + end: nil,
		"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " + end: {
			page.Scripts(page.Self), page.Styles(page.Self), page.Connections(page.Self), page.Images(page.Self, "data:"),
		},
	} {
		if got := page.Policy(needs...); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSetForeignHeaders_KeepsExistingPolicy(t *testing.T) {
	t.Parallel()
	for own, want := range map[string]string{"": "default-src 'none'; sandbox", "default-src 'self'": "default-src 'self'"} {
		resp, _ := serve(t, func(c *fiber.Ctx) error {
			if own != "" {
				c.Set("Content-Security-Policy", own)
			}
			page.SetForeignHeaders(c)
			return c.SendString("page")
		})
		wantHeaders(t, resp.Header, map[string]string{
			"Content-Security-Policy": want, "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow",
		})
	}
}

func TestProblem_IsTheFaultInWords(t *testing.T) {
	t.Parallel()
	_, _ = serve(t, func(c *fiber.Ctx) error {
		if status, message := page.Problem(c, nil); status != http.StatusOK || message != "" {
			t.Errorf("without an error: got %d %q, want 200", status, message)
		}
		err := fault.New(fault.Gone, "page_test", "The link is over.")
		if status, message := page.Problem(c, err); status != http.StatusGone || message != "The link is over." {
			t.Errorf("got %d %q, want 410 with the message", status, message)
		}
		return nil
	})
}

func TestAsset_IsSentInAcceptedEncoding(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789", 100)
	a, err := page.NewAsset(page.Kind{Type: "text/plain"}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	plain, body := serve(t, a.Send)
	if body != text || plain.ContentLength != int64(len(text)) || plain.Header.Get("Content-Encoding") != "" {
		t.Errorf("got %d bytes of length %d in %q, want the text as it is",
			len(body), plain.ContentLength, plain.Header.Get("Content-Encoding"))
	}
	wantHeaders(t, plain.Header, map[string]string{
		"Content-Type": "text/plain", "Cache-Control": "no-cache", "Vary": "Accept-Encoding", "Content-Security-Policy": "",
	})
	zipped, body := serve(t, a.Send, "Accept-Encoding", "br, gzip")
	r, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != text || zipped.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("got %q and %v, want the text", got, err)
	}
	tag := plain.Header.Get("ETag")
	known, body := serve(t, a.Send, "If-None-Match", `"x", `+tag)
	if known.StatusCode != http.StatusNotModified || body != "" || known.Header.Get("ETag") != tag {
		t.Errorf("got %d %q, want 304 without a body", known.StatusCode, body)
	}
}

func TestPageAsset_HasThePolicyOfThePage(t *testing.T) {
	t.Parallel()
	a, err := page.New(files, "hello.html", page.Style(css)).Asset("Hi")
	if err != nil {
		t.Fatal(err)
	}
	resp, body := serve(t, a.Send)
	if want := "<style>" + css + "</style><p>Hi</p>"; body != want {
		t.Errorf("got %s, want %s", body, want)
	}
	wantHeaders(t, resp.Header, map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-cache", "X-Robots-Tag": "",
		"Content-Security-Policy": page.Policy(page.Style(css)),
	})
}

func TestCompressedAsset_KnowsTheSizeOfItsContent(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, "hello"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := page.CompressedAsset(page.Kind{Type: "text/css", Immutable: true}, []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	resp, body := serve(t, a.Send)
	if body != "hello" || resp.ContentLength != 5 {
		t.Errorf("got %q of length %d, want hello", body, resp.ContentLength)
	}
	wantHeaders(t, resp.Header, map[string]string{"Cache-Control": "public, max-age=31536000, immutable"})
	if _, err := page.CompressedAsset(page.Kind{}, []byte("hello")); err == nil {
		t.Error("content that is not compressed is accepted")
	}
}
