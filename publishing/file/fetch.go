package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"crier/platform/clock"
)

// Errors returned by Fetch. The transport also checks every URL, including redirects, after it has
// resolved the host name. If the transport comes from package outbound, the error for a blocked
// address matches outbound.ErrBlocked.
var (
	// ErrAddress means that the address is not an http or https URL.
	ErrAddress = errors.New("not a public http or https address")
	// ErrUser means that the URL contains a user name or a password. It wraps ErrAddress.
	ErrUser = fmt.Errorf("%w: it contains a user name or a password", ErrAddress)
	// ErrMalformed means that an http or https URL cannot be parsed, has no host or is too long. It
	// wraps ErrAddress.
	ErrMalformed = fmt.Errorf("%w: it is malformed", ErrAddress)
	// ErrDowngrade means that the URL is http although https is required, or that an https URL
	// redirects to http. It wraps ErrAddress.
	ErrDowngrade = fmt.Errorf("%w: it is http instead of https", ErrAddress)
	// ErrRedirects means that there are more redirects than Source.Redirects allows.
	ErrRedirects = errors.New("too many redirects")
	// ErrUnreachable means that the server cannot be reached or does not respond in time.
	ErrUnreachable = errors.New("the server does not answer")
)

const (
	maxAddress = 4096 // bytes
	// firstByte limits the time until the last response's header arrives, including all redirects.
	// silence limits how long a read waits for the next bytes of the body.
	firstByte = 30 * time.Second
	silence   = 30 * time.Second
	// minRate is the minimum average number of bytes per second. It applies once the time spent
	// waiting for the server exceeds silence.
	minRate = 4096
)

// Source specifies a file to fetch and how to fetch it.
type Source struct {
	Address string
	// HTTPS requires https for the URL and for every redirect. Even if HTTPS is false, a redirect
	// from https to http is rejected.
	HTTPS bool
	// Redirects is the maximum number of redirects to follow.
	Redirects int
	// Range is the value of the request's Range header. If it is "", the whole file is requested.
	// Example: bytes=0-1023
	Range string
}

// ParseAddress parses the URL of a file. It returns ErrAddress if address is not an http or https
// URL with a host, or if it contains a user name or a password.
func ParseAddress(address string) (*url.URL, error) {
	address = strings.TrimSpace(address)
	u, err := url.Parse(address)
	scheme, _, _ := strings.Cut(strings.ToLower(address), "://")
	switch isWeb := scheme == "http" || scheme == "https"; {
	case isWeb && (err != nil || len(address) > maxAddress):
		return nil, ErrMalformed
	case err != nil || len(address) > maxAddress:
		return nil, ErrAddress
	}
	return u, checkURL(u)
}

func checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return ErrAddress
	case u.Hostname() == "", u.Opaque != "":
		return ErrMalformed
	case u.User != nil:
		return ErrUser
	}
	return nil
}

// FileName returns the name of a file that was fetched from u. If the response has a
// Content-Disposition header with a file name (RFC 6266), FileName returns that name. Otherwise, it
// returns the last part of u's path, or "" if there is none.
func FileName(u *url.URL, answer http.Header) string {
	if _, params, err := mime.ParseMediaType(answer.Get("Content-Disposition")); err == nil && params["filename"] != "" {
		return params["filename"]
	}
	name := path.Base(u.Path)
	if name == "/" || name == "." {
		return ""
	}
	return name
}

// Fetch requests a file, follows redirects, and returns the last response, regardless of its
// status. The response's Request is set. If the response contains the whole file, its body is
// decoded according to its Content-Encoding. The transport must not follow redirects itself, and
// must reject non-public addresses when it connects.
//
// The caller must close the body. Each read from the body waits at most 30 seconds, and ctx limits
// the whole fetch. If the file is not encoded as declared, reads return an error that matches
// ErrCoding.
//
// Errors returned by Fetch match ErrAddress, ErrRedirects or ErrUnreachable. If the transport
// fails, the error matches both ErrUnreachable and the transport's error.
func Fetch(ctx context.Context, transport http.RoundTripper, s Source) (*http.Response, error) {
	u, err := ParseAddress(s.Address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stalled := time.AfterFunc(firstByte, cancel)
	resp, err := follow(ctx, transport, s, u)
	stalled.Stop()
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &fetched{ReadCloser: resp.Body, stalled: stalled, cancel: cancel}
	decodeBody(resp)
	return resp, nil
}

func follow(ctx context.Context, transport http.RoundTripper, s Source, u *url.URL) (*http.Response, error) {
	secure := s.HTTPS
	for hop := 0; ; hop++ {
		if err := checkURL(u); err != nil {
			return nil, err
		}
		if secure && u.Scheme != "https" {
			return nil, ErrDowngrade
		}
		secure = secure || u.Scheme == "https"
		req := request(ctx, s, u)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		resp.Request = req
		next, err := resp.Location()
		if resp.StatusCode < 300 || resp.StatusCode > 399 || resp.StatusCode == http.StatusNotModified || err != nil {
			return resp, nil
		}
		// this response is only the redirect
		_ = resp.Body.Close()
		if hop == s.Redirects {
			return nil, ErrRedirects
		}
		u = next
	}
}

func request(ctx context.Context, s Source, u *url.URL) *http.Request {
	target := *u
	target.Fragment = ""
	req := (&http.Request{Method: http.MethodGet, URL: &target, Host: target.Host, Header: http.Header{
		"Accept": {"image/png, image/jpeg, image/gif, video/mp4"}, "Accept-Encoding": {"identity"},
		"User-Agent": {"Crier"},
	}}).WithContext(ctx)
	if s.Range != "" {
		req.Header.Set("Range", s.Range)
	}
	return req
}

// fetched is the body of a response. A read fails if it waits too long for the server, or if the
// server is too slow on average. The caller may read as slowly as it likes.
type fetched struct {
	io.ReadCloser
	stalled *time.Timer
	cancel  context.CancelFunc
	waited  time.Duration // time spent in Read
	bytes   int64
}

func (f *fetched) Read(p []byte) (int, error) {
	f.stalled.Reset(silence)
	defer f.stalled.Stop()
	began := clock.Boot()
	n, err := f.ReadCloser.Read(p)
	f.waited += clock.Boot() - began
	f.bytes += int64(n)
	if err == nil && isTooSlow(f.waited, f.bytes) {
		err = fmt.Errorf("%w: %d bytes in %s", ErrUnreachable, f.bytes, f.waited)
	}
	return n, err
}

// isTooSlow reports whether a server has sent too few bytes for the time that reads have waited.
func isTooSlow(waited time.Duration, bytes int64) bool {
	return waited > silence && float64(bytes) < waited.Seconds()*minRate
}

func (f *fetched) Close() error {
	defer f.cancel()
	return f.ReadCloser.Close()
}
