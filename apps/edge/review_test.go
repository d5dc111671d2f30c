package edge_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// formOf posts a form as a browser does.
func (r *running) formOf(t *testing.T, path string, fields url.Values) (status int, header http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+path, strings.NewReader(fields.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := r.client.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode, answer.Header
}

func TestReviewPage_PolicyAllowsItsOwnStyleOnly(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	page := r.call(t, "GET", "/review/"+knownToken, "")
	body := page.body
	_, rest, _ := strings.Cut(body, "<style>")
	style, _, found := strings.Cut(rest, "</style>")
	sum := sha256.Sum256([]byte(style))
	policy := page.header.Get("Content-Security-Policy")
	if !found || !strings.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
		t.Errorf("the policy %q does not allow the style %q", policy, style)
	}
	if page.status != http.StatusOK || strings.Contains(body, "ZgotmplZ") || !strings.Contains(body, "Acme &lt;b&gt;") || !strings.Contains(body, `alt="a cat"`) {
		t.Errorf("got %d %s, want the page with the escaped name and the image", page.status, body)
	}
}

func TestReviewPage_FormLeadsBackToThePage(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	status, header := r.formOf(t, "/review/"+knownToken, url.Values{"action": {"approve"}})
	if status != http.StatusSeeOther || header.Get("Location") != knownToken {
		t.Errorf("got %d to %q, want 303 to the page", status, header.Get("Location"))
	}
	for name, fields := range map[string]url.Values{
		"no action": {}, "a rejection without a note": {"action": {"reject"}}, "another action": {"action": {"maybe"}},
		"a long note": {"action": {"approve"}, "note": {strings.Repeat("ä", 2001)}},
	} {
		if status, _ := r.formOf(t, "/review/"+knownToken, fields); status != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400", name, status)
		}
	}
	longest := url.Values{"action": {"approve"}, "note": {strings.Repeat("😀", 2000)}, "reviewerName": {strings.Repeat("😀", 128)}}
	if status, _ := r.formOf(t, "/review/"+knownToken, longest); status != http.StatusSeeOther {
		t.Errorf("the longest texts: got %d, want 303", status)
	}
	if status, _ := r.formOf(t, "/review/"+knownToken, url.Values{"note": {strings.Repeat("x", 40_000)}}); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a larger form: got %d, want 413", status)
	}
	if status, _ := r.formOf(t, "/review/other", url.Values{"action": {"approve"}}); status != http.StatusNotFound {
		t.Errorf("another token: got %d, want 404", status)
	}
}

// Who has a key cannot fill the mailbox of a stranger with requests for reviews.
func TestRequestApproval_AddressGetsThirtyMailsAnHour(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	ask := func(email string) answer {
		return r.call(t, "POST", "/public/v1/posts/p/request-approval", `{"reviewerEmail":`+strconv.Quote(email)+`}`, "Authorization", goodKey)
	}
	for i := range 30 {
		if a := ask([]string{"ada@example.com", " ADA@example.com"}[i%2]); a.status != 201 {
			t.Fatalf("request %d: got %d %s, want 201", i+1, a.status, a.body)
		}
	}
	want(t, ask("ada@example.com"), 429, `"retryAfter"`)
	for range 31 {
		if a := ask(""); a.status != 201 {
			t.Fatalf("without an address: got %d %s, want 201", a.status, a.body)
		}
	}
	if a := ask("eve@example.com"); a.status != 201 {
		t.Errorf("another address: got %d %s, want 201", a.status, a.body)
	}
}

// Requests that are refused send no mail, and count for none.
func TestRequestApproval_RefusedCountsForNoMail(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	ask := func(note string) answer {
		body := `{"reviewerEmail":"ada@example.com","note":` + strconv.Quote(note) + `}`
		return r.call(t, "POST", "/public/v1/posts/p/request-approval", body, "Authorization", goodKey)
	}
	for range 31 {
		if a := ask(strings.Repeat("x", 2001)); a.status != 400 {
			t.Fatalf("a note that is too long: got %d %s, want 400", a.status, a.body)
		}
	}
	if a := ask("Please look."); a.status != 201 {
		t.Errorf("after refusals: got %d %s, want 201", a.status, a.body)
	}
}
