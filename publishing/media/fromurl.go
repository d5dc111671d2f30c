package media

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"crier/platform/fault"
	"crier/platform/outbound"
	"crier/platform/paste"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/file"
	mediastore "crier/publishing/media/store"
	"crier/tenancy"
)

const (
	// fetchTime limits a download by URL.
	fetchTime = 15 * time.Minute
	// fetchRedirects is how many redirects a download follows.
	fetchRedirects = 3
)

// UploadFromURL stores the file at a public http or https address and returns its row, as Upload
// does. The extension in the address need not match the content. If the address is a file of this
// instance that belongs to the organization, the call works like an upload of its bytes.
//
// It returns Invalid for an address that is not public, and for a file that cannot be downloaded or
// is of an unknown kind. It returns TooLarge as Upload does.
func (s *Media) UploadFromURL(
	ctx context.Context, p tenancy.Principal, address string,
) (publishing.Medium, error) {
	const op = "publishing.UploadFromURL"
	address = paste.Line(address)
	if key, ours := publishing.FileKey(s.cfg.BaseURL, address); ours {
		return s.copyOwn(ctx, op, p, key)
	}
	u, err := file.ParseAddress(address)
	if err != nil {
		return publishing.Medium{}, fetchFault(op, err)
	}
	if _, err := s.storageLeft(ctx, op, p.Org); err != nil {
		return publishing.Medium{}, err
	}
	download, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	resp, err := file.Fetch(download, s.deps.Fetch, file.Source{
		Address: address, Redirects: fetchRedirects,
	})
	if err != nil {
		return publishing.Medium{}, fetchFault(op, err)
	}
	defer func() { _ = resp.Body.Close() }() // only read
	if resp.StatusCode != http.StatusOK {
		return publishing.Medium{}, fault.New(fault.Invalid, op, statusMessage(resp.StatusCode))
	}
	if most := max(s.cfg.MaxImage, s.cfg.MaxVideo); resp.ContentLength > most {
		message := fmt.Sprintf("The file is too large: at most %d bytes are allowed.", most)
		return publishing.Medium{}, fault.New(fault.TooLarge, op, message)
	}
	m, err := s.save(ctx, op, p, upload{
		name: file.FileName(u, resp.Header), r: &remoteFile{op: op, r: resp.Body},
	})
	return m, notAFile(op, u, resp, err)
}

// statusMessage returns the message for a response without a file.
func statusMessage(status int) string {
	why := "its server answered with status %d."
	switch {
	case status == http.StatusUnauthorized || status == http.StatusProxyAuthRequired:
		why = "its server asks for a sign-in (status %d). The address must be public."
	case status == http.StatusForbidden:
		why = "its server refuses access (status %d). The address must be public, and may have expired."
	case status == http.StatusNotFound || status == http.StatusGone:
		why = "its server has no file at this address (status %d)."
	case status == http.StatusTooManyRequests:
		why = "its server asks to wait (status %d). Try again later."
	case status >= http.StatusInternalServerError:
		why = "its server had an error (status %d). Try again later."
	}
	return fmt.Sprintf("The file cannot be downloaded: "+why, status)
}

// signIn matches the address of a sign-in page.
var signIn = regexp.MustCompile(
	`(?i)(^|[/._-])(log-?[io]n|sign-?in|servicelogin|sso|o?auth2?|authorize|accounts?|saml2?)([/._-]|$)`,
)

// texts describes the types of responses that are not files.
var texts = map[string]string{
	"application/json": "JSON text, which may be an error message",
	"text/xml":         "XML text, which may be an error message",
	"text/plain":       "text, which may be an error message",
}

// notAFile returns the error of an upload from u. If the server sent only a text, such as a page,
// or used an unknown coding, the error says so.
func notAFile(op string, u *url.URL, resp *http.Response, err error) error {
	var foreign file.Foreign
	if !errors.As(err, &foreign) {
		return err
	}
	at := resp.Request.URL
	moved := at.Host != u.Host || at.Path != u.Path
	coding := resp.Header.Get("Content-Encoding")
	switch what := texts[foreign.Type]; {
	case coding != "":
		err = fault.Wrap(fault.Invalid, op, "The file cannot be read: its server sends it with the content coding "+
			connector.Quote(coding)+", which is not supported.", err)
	case foreign.Type == "text/html" && moved && signIn.MatchString(at.Host+at.Path):
		err = fault.Wrap(
			fault.Invalid, op, "The address led to a sign-in page on "+at.Hostname()+", not to a file. It must be public.", err,
		)
	case foreign.Type == "text/html":
		err = fault.Wrap(fault.Invalid, op,
			"The address answered with a web page, not a file. Send the address of the picture or video itself.", err)
	case what != "":
		err = fault.Wrap(fault.Invalid, op, "The address answered with "+what+", not a file.", err)
	}
	return err
}

// copyOwn stores a file of the organization as another file that shares its bytes.
func (s *Media) copyOwn(ctx context.Context, op string, p tenancy.Principal, key string) (publishing.Medium, error) {
	known, err := mediastore.FindMedia(ctx, s.db, p.Org, nil, []string{key})
	if err != nil {
		return publishing.Medium{}, pg.Fault(op, err)
	}
	if len(known) == 0 {
		return publishing.Medium{}, fault.New(fault.Invalid, op, "There is no such file on this service.")
	}
	m := known[0]
	file, err := s.deps.Blobs.Open(ctx, m.BlobKey())
	if err != nil {
		return publishing.Medium{}, fileFault(op, err)
	}
	defer func() { _ = file.Close() }() // only read
	return s.save(ctx, op, p, upload{name: m.OriginalName, r: file})
}

// remoteFile turns errors of the file's server into Invalid.
type remoteFile struct {
	op string
	r  io.Reader
}

func (f *remoteFile) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return n, err
	case errors.Is(err, file.ErrCoding):
		return n, fault.Wrap(fault.Invalid, f.op, "The file cannot be decompressed: it is damaged or incomplete, or not "+
			"encoded as its server says.", err)
	}
	return n, fault.Wrap(fault.Invalid, f.op, "The download of the file was interrupted or took too long.", err)
}

func fetchFault(op string, err error) error {
	message := "The file cannot be downloaded: its server does not answer."
	switch {
	case errors.Is(err, file.ErrUser):
		message = "The file cannot be downloaded: its address and any redirect must not contain a user name or password."
	case errors.Is(err, file.ErrMalformed):
		message = "The file cannot be downloaded: its address or a redirect is not a valid URL."
	case errors.Is(err, file.ErrDowngrade):
		message = "The file cannot be downloaded: its server redirects from https to http."
	case errors.Is(err, file.ErrAddress):
		message = "The file cannot be downloaded: its address and any redirect must begin with http:// or https://."
	case errors.Is(err, outbound.ErrPort):
		message = "The file cannot be downloaded: its address or a redirect uses a port that is not public; only " +
			"ports 80 and 443 can be reached."
	case outbound.IsUnreachable(err):
		message = "The file cannot be downloaded: its host was not found, or its address is not public, on port 80 or 443."
	case errors.Is(err, file.ErrRedirects):
		message = "The file cannot be downloaded: its server redirects too often."
	}
	return fault.Wrap(fault.Invalid, op, message, err)
}
