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

// The errors of Fetch. The address and every redirect are checked by the transport, too, after the resolution of their
// names; its refusals match ErrBlocked if the caller makes them so.
var (
	// ErrAddress is for what is no http or https address.
	ErrAddress = errors.New("no public http or https address")
	// ErrUser is for an address that contains a user name or a password. It wraps ErrAddress.
	ErrUser = fmt.Errorf("%w: it contains a user name or a password", ErrAddress)
	// ErrMalformed is for an http or https address that cannot be parsed, has no host or is too long. It wraps ErrAddress.
	ErrMalformed = fmt.Errorf("%w: it is malformed", ErrAddress)
	// ErrDowngrade is for an http address where https is required, or after https. It wraps ErrAddress.
	ErrDowngrade = fmt.Errorf("%w: it is http in place of https", ErrAddress)
	// ErrRedirects is for more redirects than are followed.
	ErrRedirects = errors.New("too many redirects")
	// ErrUnreachable is for a server that cannot be reached or does not answer in time.
	ErrUnreachable = errors.New("the server does not answer")
)

const (
	maxAddress = 4096 // bytes
	// firstByte limits the time until the header of an answer, all redirects together, and silence the wait for the next
	// bytes of its body.
	firstByte = 30 * time.Second
	silence   = 30 * time.Second
	// minRate is what a server must send on average, in bytes a second, once it was waited for for as long as silence.
	minRate = 4096
)

// Source is where and how a file is fetched.
type Source struct {
	Address string
	// HTTPS refuses http, of redirects too. Without it https is not left for http.
	HTTPS bool
	// Redirects is how many are followed.
	Redirects int
	// Range is the header Range of the request, "" for the whole file.
	Range string
}

// ParseAddress returns the URL of a file, or ErrAddress for what is no http or https URL with a host and without user.
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

// FileName returns the name of a file fetched from u: the name in the Content-Disposition header of
// the response (RFC 6266), or else the last part of the path of u, "" if there is none.
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

// Fetch requests a file and returns the response after the last redirect, of any status, with its
// Request. It undoes the content codings of a whole file; errors of the body match ErrCoding if the
// file is not encoded as declared. The transport must not follow redirects, and must refuse
// addresses that are not public when it connects. The caller closes the body, each read of which
// waits at most 30 seconds. ctx limits the whole fetch. Errors match ErrAddress, ErrRedirects or
// ErrUnreachable, and the error of the transport.
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
		_ = resp.Body.Close() // the answer is the redirect
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

// fetched is the body of an answer. A read that waits too long fails, and so does one from a server that is slow on
// average; a slow reader of it has no limit.
type fetched struct {
	io.ReadCloser
	stalled *time.Timer
	cancel  context.CancelFunc
	waited  time.Duration // in Read
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

// isTooSlow returns whether a server that was waited for has sent too few bytes.
func isTooSlow(waited time.Duration, bytes int64) bool {
	return waited > silence && float64(bytes) < waited.Seconds()*minRate
}

func (f *fetched) Close() error {
	defer f.cancel()
	return f.ReadCloser.Close()
}
