package approval_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"crier/tests/edgetest"
)

// postForm posts a form as a browser does.
func postForm(t *testing.T, r *edgetest.Service, path string, fields url.Values) (status int, header http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL+path, strings.NewReader(fields.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := r.Client.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode, answer.Header
}

func TestReviewPage_PolicyAllowsOnlyItsStyle(t *testing.T) {
	t.Parallel()
	r := edgetest.New(t, nil)
	page := r.Call(t, "GET", "/review/"+edgetest.ReviewToken, "")
	body := page.Body
	_, rest, _ := strings.Cut(body, "<style>")
	style, _, found := strings.Cut(rest, "</style>")
	sum := sha256.Sum256([]byte(style))
	policy := page.Header.Get("Content-Security-Policy")
	if !found || !strings.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
		t.Errorf("the policy %q does not allow the style %q", policy, style)
	}
	if page.Status != http.StatusOK || strings.Contains(body, "ZgotmplZ") || !strings.Contains(body, "Acme &lt;b&gt;") || !strings.Contains(body, `alt="a cat"`) {
		t.Errorf("got %d %s, want the page with the escaped name and the image", page.Status, body)
	}
}

func TestReviewPage_FormRedirectsToPage(t *testing.T) {
	t.Parallel()
	r := edgetest.New(t, nil)
	status, header := postForm(t, r, "/review/"+edgetest.ReviewToken, url.Values{"action": {"approve"}})
	if status != http.StatusSeeOther || header.Get("Location") != edgetest.ReviewToken {
		t.Errorf("got %d to %q, want 303 to the page", status, header.Get("Location"))
	}
	for name, fields := range map[string]url.Values{
		"no action": {}, "a rejection without a note": {"action": {"reject"}}, "another action": {"action": {"maybe"}},
		"a long note": {"action": {"approve"}, "note": {strings.Repeat("ä", 2001)}},
	} {
		if status, _ := postForm(t, r, "/review/"+edgetest.ReviewToken, fields); status != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400", name, status)
		}
	}
	longest := url.Values{"action": {"approve"}, "note": {strings.Repeat("😀", 2000)}, "reviewerName": {strings.Repeat("😀", 128)}}
	if status, _ := postForm(t, r, "/review/"+edgetest.ReviewToken, longest); status != http.StatusSeeOther {
		t.Errorf("the longest texts: got %d, want 303", status)
	}
	if status, _ := postForm(t, r, "/review/"+edgetest.ReviewToken, url.Values{"note": {strings.Repeat("x", 40_000)}}); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a larger form: got %d, want 413", status)
	}
	if status, _ := postForm(t, r, "/review/other", url.Values{"action": {"approve"}}); status != http.StatusNotFound {
		t.Errorf("another token: got %d, want 404", status)
	}
}
