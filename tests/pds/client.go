package pds

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"crier/tests/call"
)

// Account is an account on the test server.
type Account struct {
	DID string
	// Handle is the complete handle, which ends in ".test". Example: "alice.test".
	Handle   string
	Password string
}

// Record is a record in a repository, as the server returns it.
type Record struct {
	URI   string          `json:"uri"`
	CID   string          `json:"cid"`
	Value json.RawMessage `json:"value"`
}

// CreateAccount creates an account. handle is complete, and its first label has 3 to 18 characters.
// Example: "alice.test".
func (s *Server) CreateAccount(t testing.TB, handle, password string) Account {
	t.Helper()
	in := map[string]string{"handle": handle, "password": password, "email": handle + "@example.com"}
	a, err := call.Do(t.Context(), s.client, http.MethodPost, s.URL+"/xrpc/com.atproto.server.createAccount", in)
	if err != nil {
		t.Fatalf("the PDS does not create an account: %v", err)
	}
	var out struct{ DID, Handle string }
	if err := a.Into(&out); err != nil {
		t.Fatalf("the PDS does not create an account: %v", err)
	}
	return Account{DID: out.DID, Handle: out.Handle, Password: password}
}

// Records returns all records in a collection by ascending record key. With TID keys, that is
// oldest first.
func (s *Server) Records(t testing.TB, did, collection string) []Record {
	t.Helper()
	all := []Record{}
	query := url.Values{"repo": {did}, "collection": {collection}, "limit": {"100"}, "reverse": {"true"}}
	for {
		var page struct {
			Records []Record
			Cursor  string
		}
		a, err := s.get(t.Context(), "com.atproto.repo.listRecords", query)
		if err != nil {
			t.Fatalf("the PDS does not list records: %v", err)
		}
		if err := a.Into(&page); err != nil {
			t.Fatalf("the PDS does not list records: %v", err)
		}
		all = append(all, page.Records...)
		if len(page.Records) == 0 || page.Cursor == "" {
			return all
		}
		query.Set("cursor", page.Cursor)
	}
}

// Put writes a record to an account's repository, under a key that the server chooses, and returns
// its URI and CID.
func (s *Server) Put(t testing.TB, a Account, collection string, record map[string]any) (uri, cid string) {
	t.Helper()
	var session struct{ AccessJwt string }
	s.post(t, &session, "com.atproto.server.createSession", map[string]any{
		"identifier": a.Handle, "password": a.Password,
	})
	var out struct{ URI, CID string }
	in := map[string]any{"repo": a.DID, "collection": collection, "record": record}
	s.post(t, &out, "com.atproto.repo.createRecord", in, "Authorization", "Bearer "+session.AccessJwt)
	return out.URI, out.CID
}

func (s *Server) post(t testing.TB, out any, method string, in any, headers ...string) {
	t.Helper()
	a, err := call.Do(t.Context(), s.client, http.MethodPost, s.URL+"/xrpc/"+method, in, headers...)
	if err == nil {
		err = a.Into(out)
	}
	if err != nil {
		t.Fatalf("%s: got the error %v, want a success", method, err)
	}
}

// AppViewAway makes the AppView respond with 502 until it is called with false.
func (s *Server) AppViewAway(t testing.TB, away bool) {
	t.Helper()
	path := map[bool]string{true: "/away", false: "/back"}[away]
	if _, err := call.Do(t.Context(), s.client, http.MethodPost, s.appView+path, nil); err != nil {
		t.Fatal(err)
	}
}

// Blob returns the bytes of a blob. The server returns a blob only if a record refers to it.
func (s *Server) Blob(t testing.TB, did, cid string) []byte {
	t.Helper()
	a, err := s.get(t.Context(), "com.atproto.sync.getBlob", url.Values{"did": {did}, "cid": {cid}})
	if err != nil {
		t.Fatalf("pds: %v", err)
	}
	return []byte(a.Body)
}

// get returns an error for every status except 200.
func (s *Server) get(ctx context.Context, method string, query url.Values) (call.Answer, error) {
	a, err := call.Do(ctx, s.client, http.MethodGet, s.URL+"/xrpc/"+method+"?"+query.Encode(), nil)
	if err != nil {
		return a, err
	}
	if a.Status != http.StatusOK {
		return a, fmt.Errorf("%s: got %.4096v, want status 200", method, a)
	}
	return a, nil
}
