package pds

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
)

// Account is a user of the test server.
type Account struct {
	DID      string
	Handle   string // whole, ends in ".test"
	Password string
}

// Record is one record of a repository, as the server holds it.
type Record struct {
	URI   string          `json:"uri"`
	CID   string          `json:"cid"`
	Value json.RawMessage `json:"value"`
}

// CreateAccount makes an account. handle is whole ("alice.test"); its first word has 3 to 18 characters.
func (s *Server) CreateAccount(t testing.TB, handle, password string) Account {
	t.Helper()
	in, err := json.Marshal(map[string]string{"handle": handle, "password": password, "email": handle + "@example.com"})
	if err != nil {
		t.Fatalf("pds: %v", err)
	}
	var out struct{ DID, Handle string }
	if err := s.post(t.Context(), "com.atproto.server.createAccount", in, &out); err != nil {
		t.Fatalf("pds: %v", err)
	}
	return Account{DID: out.DID, Handle: out.Handle, Password: password}
}

// Records gives all records of a collection, by ascending record key: with TID keys, oldest first.
func (s *Server) Records(t testing.TB, did, collection string) []Record {
	t.Helper()
	all := []Record{}
	query := url.Values{"repo": {did}, "collection": {collection}, "limit": {"100"}, "reverse": {"true"}}
	for {
		var page struct {
			Records []Record
			Cursor  string
		}
		if err := s.get(t.Context(), "com.atproto.repo.listRecords", query, decode(&page)); err != nil {
			t.Fatalf("pds: %v", err)
		}
		all = append(all, page.Records...)
		if len(page.Records) == 0 || page.Cursor == "" {
			return all
		}
		query.Set("cursor", page.Cursor)
	}
}

// Blob gives the bytes of a blob. The server shows a blob only once a record refers to it.
func (s *Server) Blob(t testing.TB, did, cid string) []byte {
	t.Helper()
	var body []byte
	err := s.get(t.Context(), "com.atproto.sync.getBlob", url.Values{"did": {did}, "cid": {cid}}, func(r io.Reader) (err error) {
		body, err = io.ReadAll(r)
		return err
	})
	if err != nil {
		t.Fatalf("pds: %v", err)
	}
	return body
}

func decode(into any) func(io.Reader) error {
	return func(r io.Reader) error { return json.NewDecoder(r).Decode(into) }
}

func (s *Server) get(ctx context.Context, method string, query url.Values, read func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/xrpc/"+method+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	return s.do(req, read)
}

func (s *Server) post(ctx context.Context, method string, in []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/xrpc/"+method, bytes.NewReader(in))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	return s.do(req, decode(out))
}

// do fails on every answer but 200; a nil read ignores the body.
func (s *Server) do(req *http.Request, read func(io.Reader) error) error {
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10)) // only words for the error below
		return fmt.Errorf("%s: status %d: %s", req.URL.Path, res.StatusCode, body)
	}
	if read == nil {
		return nil
	}
	return read(res.Body)
}
