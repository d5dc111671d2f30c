package bluesky

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"crier/platform/clock"
	"crier/platform/outbound"
	"crier/publishing/connector"
)

const (
	maxAnswer = 1 << 20 // bytes
	maxRaw    = 300     // bytes of the server's words in an error
	maxAfter  = 24 * time.Hour
)

// client calls one server.
type client struct {
	http    connector.HTTP
	clock   clock.Clock
	base    string
	token   string   // bearer, may be empty
	secrets []string // what an error may not repeat
}

func (cl client) request(ctx context.Context, httpMethod, method string, query url.Values, body io.Reader) (*http.Request, error) {
	address := cl.base + "/xrpc/" + method
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, httpMethod, address, body)
	if err != nil {
		return nil, &connector.Error{Kind: connector.KindContent, Public: "The address of the Bluesky service cannot be used.", Err: err}
	}
	if cl.token != "" {
		req.Header.Set("Authorization", "Bearer "+cl.token)
	}
	return req, nil
}

// query reads.
func (cl client) query(ctx context.Context, method string, query url.Values, out any) error {
	req, err := cl.request(ctx, http.MethodGet, method, query, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := cl.http.Do(req)
	return cl.read(resp, err, out, false)
}

// call changes what may be changed twice. A nil body sends none.
func (cl client) call(ctx context.Context, method, contentType string, body []byte, out any) error {
	req, err := cl.post(ctx, method, contentType, body)
	if err != nil {
		return err
	}
	resp, err := cl.http.Do(req)
	return cl.read(resp, err, out, false)
}

// stream is call for a body of size bytes that is read while it is sent, once, and closed in any case.
func (cl client) stream(ctx context.Context, method, contentType string, body io.ReadCloser, size int64, out any) error {
	req, err := cl.request(ctx, http.MethodPost, method, nil, body)
	if err != nil {
		_ = body.Close() // only read
		return err
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", contentType)
	resp, err := cl.http.Do(req)
	return cl.read(resp, err, out, false)
}

// commit makes the irreversible call.
func (cl client) commit(ctx context.Context, method string, body []byte, out any) error {
	req, err := cl.post(ctx, method, "application/json", body)
	if err != nil {
		return err
	}
	resp, err := cl.http.Commit(req)
	return cl.read(resp, err, out, true)
}

func (cl client) post(ctx context.Context, method, contentType string, body []byte) (*http.Request, error) {
	req, err := cl.request(ctx, http.MethodPost, method, nil, bytes.NewReader(body))
	if err == nil && contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	return req, err
}

// read decodes an answer into out.
func (cl client) read(resp *http.Response, err error, out any, committing bool) error {
	if err != nil {
		return connector.FromSend(err, committing)
	}
	body, err := outbound.ReadAll(resp, maxAnswer)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return cl.refusal(resp, body, committing) // the status alone decides, even if the body broke
	}
	if err == nil {
		err = json.Unmarshal(body, out)
	}
	if err == nil {
		return nil
	}
	return unreadable(resp.StatusCode, err, committing)
}

// unreadable is a success whose words got lost: in a commit the record may well be there.
func unreadable(status int, err error, committing bool) *connector.Error {
	e := &connector.Error{Kind: connector.KindTransient, Status: status, Public: "The answer of the Bluesky server cannot be read.", Err: err}
	if committing {
		e.Kind = connector.KindUnknown
	}
	return e
}

// errorName is the shape that XRPC asks of the name of an error: an ASCII constant without white space. What names its
// error in another way, such as a proxy, is no AT protocol server.
var errorName = regexp.MustCompile(`^[!-~]+$`)

// refusal classifies by the server's code first, then by the status.
func (cl client) refusal(resp *http.Response, body []byte, committing bool) *connector.Error {
	var said struct{ Error, Message string }
	author := connector.ByOther
	if json.Unmarshal(body, &said) == nil && errorName.MatchString(said.Error) {
		author = connector.ByPlatform
	}
	e := connector.FromStatus(resp, author, committing)
	e.Code, e.Raw = said.Error, cl.clean(said.Message)
	if !slices.Contains(codes, e.Code) { // a known one holds no secret, even where a short password is a part of it
		e.Code = cl.clean(e.Code)
	}
	if e.Author == connector.ByPlatform && resp.StatusCode < 500 { // a code of a failing server proves nothing
		byCode(e)
	}
	if e.Kind == connector.KindTransient && resp.StatusCode < 500 && e.After == 0 {
		e.After = cl.reset(resp.Header)
	}
	return e
}

// codes are the names of errors that mean something to this package.
var codes = []string{
	"ExpiredToken", "InvalidToken", "AuthMissing", "AuthenticationRequired", "AuthFactorTokenRequired",
	"AccountTakedown", "AccountSuspended", "RepoTakendown", "RepoSuspended", "AccountDeactivated", "RepoDeactivated",
	"AccountNotFound", "RepoNotFound", "RateLimitExceeded", "BlobNotFound", "RecordNotFound", "InvalidSwap",
}

func byCode(e *connector.Error) {
	switch e.Code {
	case "ExpiredToken", "InvalidToken", "AuthMissing", "AuthenticationRequired":
		e.Kind, e.Public = connector.KindReauth, "Bluesky no longer accepts our access; reconnect the channel."
	case "AuthFactorTokenRequired":
		e.Kind, e.Public = connector.KindReauth, "This account has two-factor sign-in: use an app password, made in Bluesky under Settings, Privacy and security, App passwords."
	case "AccountTakedown", "AccountSuspended", "RepoTakendown", "RepoSuspended":
		e.Kind, e.Public = connector.KindDisconnect, "Bluesky has taken this account down."
	case "AccountDeactivated", "RepoDeactivated":
		e.Kind, e.Public = connector.KindDisconnect, "This Bluesky account is deactivated; activate it again in Bluesky."
	case "AccountNotFound", "RepoNotFound":
		e.Kind, e.Public = connector.KindDisconnect, "This account is no longer on its Bluesky server."
	case "RateLimitExceeded":
		e.Kind, e.Public = connector.KindTransient, "Bluesky asks us to slow down."
	case "BlobNotFound": // servers drop uploads that no record names; Prepare uploads old ones again
		e.Kind, e.Public = connector.KindTransient, "Bluesky lost an uploaded image; it will be uploaded again."
	default:
		if e.Kind == connector.KindContent && e.Raw != "" {
			e.Public = "Bluesky refused this: " + strings.TrimRight(e.Raw, ".") + "."
		}
	}
}

// clean shortens a server's words to one line without our secrets.
func (cl client) clean(words string) string {
	for _, secret := range append(cl.secrets, cl.token) {
		if secret != "" {
			words = strings.ReplaceAll(words, secret, "…")
		}
	}
	return connector.Clean(words, maxRaw)
}

// reset reads when a rate limit's window ends, a time in Unix seconds; 0 when absent.
func (cl client) reset(h http.Header) time.Duration {
	at, err := strconv.ParseInt(h.Get("RateLimit-Reset"), 10, 64)
	if err != nil {
		return 0
	}
	return min(max(time.Unix(at, 0).Sub(cl.clock.Now()), 0), maxAfter)
}

// codeOf gives the server's code of an error, or "".
func codeOf(err error) string {
	var e *connector.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
