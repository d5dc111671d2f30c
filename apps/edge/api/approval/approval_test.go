package approval_test

import (
	"strconv"
	"strings"
	"testing"

	"crier/tests/edgetest"
)

// The holder of a key cannot flood a stranger's mailbox with review requests.
func TestRequestApproval_AddressGetsThirtyMailsAnHour(t *testing.T) {
	t.Parallel()
	r := edgetest.New(t, nil)
	ask := func(email string) edgetest.Answer {
		return r.Call(t, "POST", "/public/v1/posts/p/request-approval", `{"reviewerEmail":`+strconv.Quote(email)+`}`, "Authorization", edgetest.APIKey)
	}
	for i := range 30 {
		if a := ask([]string{"ada@example.com", " ADA@example.com"}[i%2]); a.Status != 201 {
			t.Fatalf("request %d: got %d %s, want 201", i+1, a.Status, a.Body)
		}
	}
	edgetest.Want(t, ask("ada@example.com"), 429, `"retryAfter"`)
	for range 31 {
		if a := ask(""); a.Status != 201 {
			t.Fatalf("without an address: got %d %s, want 201", a.Status, a.Body)
		}
	}
	if a := ask("eve@example.com"); a.Status != 201 {
		t.Errorf("another address: got %d %s, want 201", a.Status, a.Body)
	}
}

// Refused requests send no mail, so they do not count as mails.
func TestRequestApproval_RefusedIsNotCounted(t *testing.T) {
	t.Parallel()
	r := edgetest.New(t, nil)
	ask := func(note string) edgetest.Answer {
		body := `{"reviewerEmail":"ada@example.com","note":` + strconv.Quote(note) + `}`
		return r.Call(t, "POST", "/public/v1/posts/p/request-approval", body, "Authorization", edgetest.APIKey)
	}
	for range 31 {
		if a := ask(strings.Repeat("x", 2001)); a.Status != 400 {
			t.Fatalf("a note that is too long: got %d %s, want 400", a.Status, a.Body)
		}
	}
	if a := ask("Please look."); a.Status != 201 {
		t.Errorf("after refusals: got %d %s, want 201", a.Status, a.Body)
	}
}
