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
	// fetchTime limits one download.
	fetchTime = 15 * time.Minute
	// fetchRedirects is the maximum number of redirects that a download follows.
	fetchRedirects = 3
)

// UploadFromURL is like Upload, but takes the file from a public http or https URL. The URL's
// extension need not match the content. If the URL points to one of the organization's files on
// this instance, UploadFromURL behaves as if the file's bytes had been uploaded. If the URL is one
// of the organization's upload addresses, UploadFromURL returns the file that was uploaded to it.
//
// UploadFromURL returns Invalid if the URL is not public, the file cannot be downloaded, or its
// type is unknown, or if nothing has been uploaded to the address. It returns TooLarge in the same
// cases as Upload.
func (s *Media) UploadFromURL(
	ctx context.Context, p tenancy.Principal, address string,
) (publishing.Medium, error) {
	const op = "publishing.UploadFromURL"
	address = paste.Line(address)
	if key, ours := publishing.FileKey(s.cfg.BaseURL, address); ours {
		return s.copyOwn(ctx, op, p, key)
	}
	if token, ours := publishing.UploadToken(s.cfg.BaseURL, address); ours {
		return s.uploadedTo(ctx, op, p, token)
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

// statusMessage returns the message for a response whose status is not 200.
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

// signIn matches the host and path of a sign-in page.
var signIn = regexp.MustCompile(
	`(?i)(^|[/._-])(log-?[io]n|sign-?in|servicelogin|sso|o?auth2?|authorize|accounts?|saml2?)([/._-]|$)`,
)

// texts maps content types of text responses to human-readable descriptions.
var texts = map[string]string{
	"application/json": "JSON text, which may be an error message",
	"text/xml":         "XML text, which may be an error message",
	"text/plain":       "text, which may be an error message",
}

// notAFile replaces err with a more specific error if the server sent text, such as a web page, or
// used an unsupported content coding. u is the URL that was requested.
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
			fault.Invalid, op,
			"The address led to a sign-in page on "+at.Hostname()+", not to a file. It must be public.", err,
		)
	case foreign.Type == "text/html":
		err = fault.Wrap(fault.Invalid, op,
			"The address answered with a web page, not a file. Send the address of the picture or video itself.", err)
	case what != "":
		err = fault.Wrap(fault.Invalid, op, "The address answered with "+what+", not a file.", err)
	}
	return err
}

// copyOwn stores a new file that shares the bytes of one of the organization's files.
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

// remoteFile converts errors from reading a remote file to Invalid.
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
