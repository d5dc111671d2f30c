// Package call makes HTTP requests for tests and reads the complete responses.
package call

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Answer is a complete response.
type Answer struct {
	// Status is the HTTP status code.
	Status int
	Header http.Header
	Body   string
}

// String returns the status and the body.
func (a Answer) String() string { return fmt.Sprintf("%d %s", a.Status, a.Body) }

// Into decodes the JSON body into v, unless v is nil. It returns an error if the status is not 2xx.
func (a Answer) Into(v any) error {
	if a.Status < 200 || a.Status > 299 {
		return fmt.Errorf("the answer is %v", a)
	}
	if v == nil {
		return nil
	}
	if err := json.Unmarshal([]byte(a.Body), v); err != nil {
		return fmt.Errorf("%w in %v", err, a)
	}
	return nil
}

// Cookie returns the value of a cookie that the response sets, or "".
func (a Answer) Cookie(name string) string {
	for _, c := range (&http.Response{Header: a.Header}).Cookies() {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// Do makes one request. Bytes and strings are sent as they are, any other body as JSON. Headers are
// pairs of name and value; pairs with an empty value are left out. An error means that no complete
// response arrived.
func Do(ctx context.Context, client *http.Client, method, url string, body any, headers ...string) (Answer, error) {
	req, err := Request(ctx, method, url, body, headers...)
	if err != nil {
		return Answer{}, err
	}
	return Send(client, req)
}

// Request returns the request that Do would send. It returns an error if the body cannot be encoded
// as JSON or the URL is invalid.
func Request(ctx context.Context, method, url string, body any, headers ...string) (*http.Request, error) {
	var raw []byte
	switch b := body.(type) {
	case nil:
	case []byte:
		raw = b
	case string:
		raw = []byte(b)
	default:
		var err error
		raw, err = json.Marshal(b)
		if err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.GetBody = nil // keeps the client from repeating the request
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] != "" {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	return req, nil
}

// Send sends a request and reads the response. An error means that no complete response arrived.
func Send(client *http.Client, req *http.Request) (Answer, error) {
	resp, err := client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(raw)}, nil
}
