package signin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"golang.org/x/oauth2"

	"crier/platform/outbound"
)

// maxAnswer is the maximum length of a response, in bytes. It is less than the length at which
// oauth2 truncates a response.
const maxAnswer = 1_000_000

// web makes the HTTP requests of a sign-in.
type web struct{ out *outbound.Client }

// exchange sends the code to the token endpoint, at most once.
func (w web) exchange(ctx context.Context, client *oauth2.Config, cb Callback) (*oauth2.Token, error) {
	once := w.out.HTTP() // does not follow redirects after a POST
	once.Transport = commit(w)
	token, err := client.Exchange(
		context.WithValue(ctx, oauth2.HTTPClient, once), cb.Code, oauth2.VerifierOption(cb.Verifier),
	)
	if err != nil {
		return nil, fmt.Errorf("token endpoint: %w", tokenError(err))
	}
	if !strings.EqualFold(token.TokenType, "bearer") {
		return nil, fmt.Errorf("token endpoint: %w", errAnswer)
	}
	return token, nil
}

// commit is the transport for a code exchange. It sends each request at most once, whereas net/http
// may repeat a request on another connection. If a code arrives twice, a provider rejects it and
// may revoke the token that it issued for the first request.
type commit struct{ out *outbound.Client }

// RoundTrip returns a response whose body has already been read. It returns an error if the body is
// longer than maxAnswer bytes.
func (c commit) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Accept", "application/json") // GitHub responds with a form otherwise
	resp, err := c.out.Commit(req)
	if err != nil {
		return nil, err
	}
	body, err := outbound.ReadAll(resp, maxAnswer)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// getJSON fetches a JSON document. It follows redirects only within the same host, and follows none
// if it sends an access token. If the provider rejects the token, the error matches errRefused. For
// any other status except 200, the error is a *statusError.
func (w web) getJSON(ctx context.Context, address, token string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errAnswer // the address is from the metadata
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "Crier") // GitHub requires one
	client := w.out.HTTP()
	check := client.CheckRedirect
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if token != "" || next.URL.Host != via[0].URL.Host {
			return http.ErrUseLastResponse
		}
		return check(next, via)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return transportError(err)
	}
	body, err := outbound.ReadAll(resp, maxAnswer)
	if err != nil {
		return transportError(err)
	}
	if token != "" && resp.StatusCode == http.StatusUnauthorized {
		return refused("the access token was not accepted")
	}
	if resp.StatusCode != http.StatusOK {
		return &statusError{status: resp.StatusCode, limited: isLimited(resp)}
	}
	if err := json.Unmarshal(body, into); err != nil {
		return errAnswer
	}
	return nil
}

// isLimited reports whether a response rejects a request because of a rate limit. GitHub also uses
// status 403 for this.
func isLimited(resp *http.Response) bool {
	return resp.StatusCode == http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "" ||
		resp.Header.Get("X-Ratelimit-Remaining") == "0"
}
