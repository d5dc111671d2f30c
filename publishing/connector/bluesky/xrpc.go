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
	"crier/platform/text"
	"crier/publishing/connector"
)

const (
	maxAnswer = 1 << 20 // bytes
	maxRaw    = 300     // bytes of the server's message in an error
	maxAfter  = 24 * time.Hour
)

// client makes XRPC calls to one server.
type client struct {
	http    connector.HTTP
	clock   clock.Clock
	base    string
	token   string   // bearer token; may be empty
	secrets []string // removed from errors
}

func (cl client) request(
	ctx context.Context, httpMethod, method string, query url.Values, body io.Reader,
) (*http.Request, error) {
	address := cl.base + "/xrpc/" + method
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, httpMethod, address, body)
	if err != nil {
		const public = "The address of the Bluesky service cannot be used."
		return nil, &connector.Error{Kind: connector.KindContent, Public: public, Err: err}
	}
	if cl.token != "" {
		req.Header.Set("Authorization", "Bearer "+cl.token)
	}
	return req, nil
}

// query makes a read-only call.
func (cl client) query(ctx context.Context, method string, query url.Values, out any) error {
	req, err := cl.request(ctx, http.MethodGet, method, query, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := cl.http.Do(req)
	return cl.read(resp, err, out, false)
}

// call sends a request that can be repeated. If body is nil, no body is sent.
func (cl client) call(ctx context.Context, method, contentType string, body []byte, out any) error {
	req, err := cl.post(ctx, method, contentType, body)
	if err != nil {
		return err
	}
	resp, err := cl.http.Do(req)
	return cl.read(resp, err, out, false)
}

// stream is like call but streams a body of size bytes. It reads the body once and always closes
// the body.
func (cl client) stream(
	ctx context.Context, method, contentType string, body io.ReadCloser, size int64, out any,
) error {
	req, err := cl.request(ctx, http.MethodPost, method, nil, body)
	if err != nil {
		_ = body.Close() // opened for reading only
		return err
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", contentType)
	resp, err := cl.http.Do(req)
	return cl.read(resp, err, out, false)
}

// commit makes an irreversible call. If there is no response but data may have been sent, it
// returns KindUnknown.
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
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	return req, nil
}

// read decodes a response into out. If there is no response, err is the error from sending the
// request.
func (cl client) read(resp *http.Response, err error, out any, committing bool) error {
	if err != nil {
		return connector.FromSend(err, committing)
	}
	body, err := outbound.ReadAll(resp, maxAnswer)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		// the status is enough, even if the body is incomplete
		return cl.refusal(resp, body, committing)
	}
	if err != nil {
		return badAnswer(resp.StatusCode, err, committing)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return badAnswer(resp.StatusCode, err, committing)
	}
	return nil
}

// badAnswer returns the error for a successful response whose body cannot be used. During a commit,
// the error is KindUnknown because the record probably exists.
func badAnswer(status int, err error, committing bool) *connector.Error {
	kind := connector.KindTransient
	if committing {
		kind = connector.KindUnknown
	}
	const public = "The response from the Bluesky server cannot be read."
	return &connector.Error{Kind: kind, Status: status, Public: public, Err: err}
}

// errorName matches the error names that XRPC permits: ASCII without white space. If a response has
// any other error name, it was not sent by an AT Protocol server but by something else, such as a
// proxy.
var errorName = regexp.MustCompile(`^[!-~]+$`)

// refusal classifies an unsuccessful response, first by its status and then by the server's error
// code.
func (cl client) refusal(resp *http.Response, body []byte, committing bool) *connector.Error {
	var answer struct{ Error, Message string }
	author := connector.ByPlatform
	if json.Unmarshal(body, &answer) != nil || !errorName.MatchString(answer.Error) {
		author = connector.ByOther
	}
	e := connector.FromStatus(resp, author, committing)
	e.Code, e.Raw = answer.Error, cl.clean(answer.Message)
	// known codes are not cleaned, because a code may happen to contain a short password
	if !slices.Contains(codes, e.Code) {
		e.Code = cl.clean(e.Code)
	}
	// an error code from a failing server proves nothing
	if e.Author == connector.ByPlatform && resp.StatusCode < 500 {
		byCode(e)
	}
	if e.Kind == connector.KindTransient && resp.StatusCode < 500 && e.After == 0 {
		e.After = cl.rateLimitReset(resp.Header)
	}
	return e
}

// codes are the known error codes. refusal does not redact secrets in them.
var codes = []string{
	"ExpiredToken", "InvalidToken", "AuthMissing", "AuthenticationRequired", "AuthFactorTokenRequired",
	"AccountTakedown", "AccountSuspended", "RepoTakendown", "RepoSuspended", "AccountDeactivated", "RepoDeactivated",
	"AccountNotFound", "RepoNotFound", "RateLimitExceeded", "BlobNotFound", "RecordNotFound", "InvalidSwap",
}

// byCode refines the result of connector.FromStatus using the error code. If the code is unknown,
// the kind stays unchanged.
func byCode(e *connector.Error) {
	switch e.Code {
	case "ExpiredToken", "InvalidToken", "AuthMissing", "AuthenticationRequired":
		e.Kind, e.Public = connector.KindReauth, "Bluesky no longer accepts this channel's credentials; "+
			"reconnect the channel."
	case "AuthFactorTokenRequired":
		e.Kind, e.Public = connector.KindReauth, "This account uses two-factor sign-in: use an app password, "+
			"created in Bluesky under Settings, Privacy and security, App passwords."
	case "AccountTakedown", "AccountSuspended", "RepoTakendown", "RepoSuspended":
		e.Kind, e.Public = connector.KindDisconnect, "Bluesky has taken this account down."
	case "AccountDeactivated", "RepoDeactivated":
		e.Kind = connector.KindDisconnect
		e.Public = "This Bluesky account is deactivated; reactivate it in Bluesky."
	case "AccountNotFound", "RepoNotFound":
		e.Kind, e.Public = connector.KindDisconnect, "This account is no longer on its Bluesky server."
	case "RateLimitExceeded":
		e.Kind, e.Public = connector.KindTransient, "Bluesky asked Crier to slow down."
	case "BlobNotFound": // servers delete unreferenced uploads; Prepare repeats old ones
		e.Kind, e.Public = connector.KindTransient, "Bluesky lost an uploaded image; it will be uploaded again."
	default:
		if e.Kind == connector.KindContent && e.Raw != "" {
			e.Public = "Bluesky refused this: " + strings.TrimRight(e.Raw, ".") + "."
		}
	}
}

// clean returns a message from the server as one short line, with our secrets removed.
func (cl client) clean(words string) string {
	for _, secret := range append(cl.secrets, cl.token) {
		if secret != "" {
			words = strings.ReplaceAll(words, secret, "…")
		}
	}
	return text.Line(words, maxRaw)
}

// rateLimitReset returns the time until the rate-limit window ends, capped at maxAfter. It returns
// 0 if the header is absent or invalid.
func (cl client) rateLimitReset(h http.Header) time.Duration {
	at, err := strconv.ParseInt(h.Get("RateLimit-Reset"), 10, 64)
	if err != nil {
		return 0
	}
	return min(max(time.Unix(at, 0).Sub(cl.clock.Now()), 0), maxAfter)
}

func codeOf(err error) string {
	var e *connector.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
