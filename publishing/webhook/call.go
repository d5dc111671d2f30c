package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"crier/platform/clock"
	"crier/platform/outbound"
	"crier/platform/text"
	"crier/publishing"
)

// HTTP is the guarded client for outgoing calls.
type HTTP interface {
	// Do sends a request that is safe to repeat. If a POST is redirected, Do returns the redirect
	// as the response.
	Do(req *http.Request) (*http.Response, error)
	// IsOpen reports whether the operator has explicitly allowed a URL's host and port.
	IsOpen(u *url.URL) bool
}

// answer is the outcome of a call to an endpoint.
type answer struct {
	// status is 0 if there was no response.
	status int
	// problem is a human-readable explanation of why the call failed. It is "" if the call
	// succeeded.
	problem string
	excerpt string
	took    time.Duration
	// after is the wait that the endpoint requested with status 429 or 503 and a Retry-After
	// header. It is 0 if the endpoint did not request a wait.
	after time.Duration
	// cause is the error to log. withoutURL must first remove the URL.
	cause error
}

// send calls an endpoint once, within publishing.WebhookTimeout. It reads at most
// publishing.MaxWebhookAnswer bytes of the response.
func send(ctx context.Context, client HTTP, address string, header http.Header, body string, now time.Time) answer {
	ctx, cancel := context.WithTimeout(ctx, publishing.WebhookTimeout)
	defer cancel()
	began := clock.Boot()
	out := exchange(ctx, client, address, header, body, now)
	out.took = clock.Boot() - began
	return out
}

func exchange(
	ctx context.Context, client HTTP, address string, header http.Header, body string, now time.Time,
) answer {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		return answer{problem: "The endpoint's address is not valid.", cause: err}
	}
	req.Header = header
	resp, err := client.Do(req)
	if err != nil {
		return answer{problem: explain(err), cause: err}
	}
	read, err := io.ReadAll(io.LimitReader(resp.Body, publishing.MaxWebhookAnswer))
	// The rest of a long response is not read; closing the body closes the connection.
	err = errors.Join(err, resp.Body.Close())
	out := answer{status: resp.StatusCode, excerpt: excerpt(read)}
	switch {
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		if errors.Is(err, context.DeadlineExceeded) {
			out.problem, out.cause = explain(err), err
		}
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		out.problem = fmt.Sprintf("The endpoint answered with a redirect (%d), which is not followed.", resp.StatusCode)
	default:
		out.problem = fmt.Sprintf("The endpoint answered with status %d.", resp.StatusCode)
	}
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		out.after = retryAfter(resp.Header.Get("Retry-After"), now)
	}
	return out
}

// retryAfter returns the wait requested by a Retry-After header, or 0 if there is none.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(header, 10, 32); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// explain returns a human-readable explanation of why there was no response. It reveals nothing
// about this instance's network.
func explain(err error) string {
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	switch {
	case errors.Is(err, outbound.ErrPort):
		return "The endpoint's port is not public, so it was not called; only ports 80 and 443 can be reached."
	case outbound.IsUnreachable(err):
		return "The endpoint's host was not found, or its address is not public, so it was not called."
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("The endpoint did not answer within %d seconds.", int(publishing.WebhookTimeout.Seconds()))
	case errors.As(err, &certificate), errors.As(err, &authority), errors.As(err, &host):
		return "The endpoint's certificate is not valid."
	case errors.Is(err, syscall.ECONNREFUSED):
		return "The endpoint refused the connection."
	}
	return "The connection to the endpoint failed."
}

// withoutURL returns err without the URL. If err contains a *url.Error, the result is the error
// that the *url.Error wraps. The URL must not be logged, because receivers put secrets into URL
// paths.
func withoutURL(err error) error {
	for failed := (*url.Error)(nil); errors.As(err, &failed); {
		err = failed.Err
	}
	return err
}

// hostOf returns a URL's host and port, or "" if the URL is invalid. Example:
// hooks.example.com:8443
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// excerpt returns the beginning of a response as text that can be stored and shown.
func excerpt(body []byte) string {
	shown := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(body), ""))
	return text.CutBytes(shown, publishing.MaxWebhookExcerpt)
}

// Try posts a body to a URL once, without a signature. It returns the response status, or 0 if
// there was no response. problem is a human-readable explanation of why the call failed, or "" if
// it succeeded.
func Try(ctx context.Context, client HTTP, address, body string, now time.Time) (status int, problem string) {
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	header.Set("User-Agent", "Crier-Webhooks/1")
	a := send(ctx, client, address, header, body, now)
	return a.status, a.problem
}
