package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"crier/platform/fault"
	"crier/platform/outbound"
	"crier/platform/paste"
	"crier/publishing"
	publishingmedia "crier/publishing/media"
	"crier/tenancy"
)

const (
	// fetchTime limits a download by URL.
	fetchTime = 15 * time.Minute
	// fetchRedirects is how many redirects a download follows.
	fetchRedirects = 3
)

// UploadFromURL stores the file at a public http or https address and returns its row, as Upload does; the extension of
// the address may be another than that of the content. The address of a file of this instance works like the upload of
// its bytes if the organization has the file. It returns Invalid for an address that is not public, and for a file that cannot be downloaded or
// is of no known kind, and TooLarge as Upload does.
func (s *Media) UploadFromURL(
	ctx context.Context, p tenancy.Principal, address string,
) (publishing.Medium, error) {
	const op = "publishing.UploadFromURL"
	address = paste.Line(address)
	if key, ours := s.keyOf(address); ours {
		return s.copyOwn(ctx, op, p, key)
	}
	u, err := publishingmedia.ParseAddress(address)
	if err != nil {
		return publishing.Medium{}, fetchFault(op, err)
	}
	if _, err := s.storageLeft(ctx, op, p.Org); err != nil {
		return publishing.Medium{}, err
	}
	download, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	resp, err := publishingmedia.Fetch(download, s.deps.Fetch, publishingmedia.Source{
		Address: address, Redirects: fetchRedirects,
	})
	if err != nil {
		return publishing.Medium{}, fetchFault(op, err)
	}
	defer func() { _ = resp.Body.Close() }() // only read
	if resp.StatusCode != http.StatusOK {
		message := fmt.Sprintf("The file cannot be downloaded: its server answers with the status %d.", resp.StatusCode)
		return publishing.Medium{}, fault.New(fault.Invalid, op, message)
	}
	if most := max(s.cfg.MaxImage, s.cfg.MaxVideo); resp.ContentLength > most {
		message := fmt.Sprintf("The file is too large: at most %d bytes are allowed.", most)
		return publishing.Medium{}, fault.New(fault.TooLarge, op, message)
	}
	return s.save(ctx, op, p, upload{name: publishingmedia.FileName(u, resp.Header), r: &remoteFile{op: op, r: resp.Body}})
}

// copyOwn stores a file of the organization as another file, which shares its bytes.
func (s *Media) copyOwn(ctx context.Context, op string, p tenancy.Principal, key string) (publishing.Medium, error) {
	known, err := s.store.Lookup(ctx, p.Org, nil, nil, []string{key})
	if err != nil {
		return publishing.Medium{}, internal(op, err)
	}
	if len(known.Media) == 0 {
		return publishing.Medium{}, fault.New(fault.Invalid, op, "There is no such file on this service.")
	}
	m := known.Media[0]
	file, err := s.deps.Blobs.Open(ctx, m.BlobKey())
	if err != nil {
		return publishing.Medium{}, fileFault(op, err)
	}
	defer func() { _ = file.Close() }() // only read
	return s.save(ctx, op, p, upload{name: m.OriginalName, r: file})
}

// remoteFile makes errors of the server of a file Invalid.
type remoteFile struct {
	op string
	r  io.Reader
}

func (f *remoteFile) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fault.Wrap(fault.Invalid, f.op, "The download of the file broke off or took too long.", err)
	}
	return n, err
}

func fetchFault(op string, err error) error {
	message := "The file cannot be downloaded: its server does not answer."
	switch {
	case errors.Is(err, publishingmedia.ErrAddress):
		message = "The file cannot be downloaded: the address must be http or https."
	case errors.Is(err, outbound.ErrPort):
		message = "The file cannot be downloaded: the port of its address, or of a redirect, is not public; only the " +
			"ports 80 and 443 can be reached."
	case outbound.IsUnreachable(err):
		message = "The file cannot be downloaded: its host was not found, or its address is not public, on port 80 or 443."
	case errors.Is(err, publishingmedia.ErrRedirects):
		message = "The file cannot be downloaded: its server redirects too often."
	}
	return fault.Wrap(fault.Invalid, op, message, err)
}
