package media

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"crier/platform/fault"
	"crier/platform/outbound"
	"crier/publishing"
	"crier/publishing/file"
)

// streamRedirects is how many redirects Stream follows.
const streamRedirects = 5

// OwnFile splits a URL of one of this instance's files into the two parts that Open takes. ours is
// false if the URL does not belong to this instance.
func (s *Media) OwnFile(address string) (key, file string, ours bool) {
	key, ours = publishing.FileKey(s.cfg.BaseURL, address)
	u, err := url.Parse(address)
	if !ours || err != nil {
		return "", "", false
	}
	return key, u.Path[strings.LastIndex(u.Path, "/")+1:], true
}

// Stream opens the video at a public https URL whose path ends in .mp4. requested is the value of a
// Range header; "" requests the whole video. ctx applies to the entire transfer, even after Stream
// has returned.
//
// Stream returns Invalid for any other URL, and for a file that is not an MP4 video or is too
// large. It returns Upstream if the server does not respond or does not have the file. It returns
// Loop if there are too many redirects.
func (s *Media) Stream(ctx context.Context, address, requested string) (publishing.VideoStream, error) {
	const op = "publishing.Stream"
	u, err := file.ParseAddress(address)
	if err != nil || u.Scheme != "https" || !strings.HasSuffix(strings.ToLower(u.Path), ".mp4") {
		return publishing.VideoStream{}, fault.New(
			fault.Invalid, op, "The url must be an https address that ends in .mp4.",
		)
	}
	resp, err := file.Fetch(ctx, s.deps.Fetch, file.Source{
		Address: address, HTTPS: true, Redirects: streamRedirects, Range: requested,
	})
	if err != nil {
		return publishing.VideoStream{}, streamFault(op, err)
	}
	out, err := s.videoOf(op, resp)
	if err != nil {
		return publishing.VideoStream{}, errors.Join(err, resp.Body.Close())
	}
	return out, nil
}

func (s *Media) videoOf(op string, resp *http.Response) (publishing.VideoStream, error) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return publishing.VideoStream{}, fault.New(fault.Invalid, op, "The video has no such range.")
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPartialContent:
		return publishing.VideoStream{}, fault.New(fault.Upstream, op, "The video's server does not have it.")
	case kind != "video/mp4":
		return publishing.VideoStream{}, fault.New(fault.Invalid, op, "The file at this address is not an MP4 video.")
	case resp.Header.Get("Content-Encoding") != "":
		return publishing.VideoStream{}, fault.New(fault.Invalid, op, "The video's server sends it compressed.")
	case resp.ContentLength > s.cfg.MaxVideo:
		return publishing.VideoStream{}, fault.New(fault.Invalid, op, "The video is too large.")
	}
	out := publishing.VideoStream{Body: resp.Body, Size: resp.ContentLength}
	if resp.StatusCode == http.StatusPartialContent {
		out.ContentRange = resp.Header.Get("Content-Range")
	}
	if out.Size < 0 {
		out.Body = limitedBody{Reader: io.LimitReader(resp.Body, s.cfg.MaxVideo), Closer: resp.Body}
	}
	return out, nil
}

type limitedBody struct {
	io.Reader
	io.Closer
}

func streamFault(op string, err error) error {
	switch {
	case errors.Is(err, outbound.ErrPort):
		return fault.Wrap(fault.Invalid, op, "The video's address or a redirect uses a port that is not public; "+
			"only ports 80 and 443 can be reached.", err)
	case errors.Is(err, file.ErrAddress), outbound.IsUnreachable(err):
		return fault.Wrap(fault.Invalid, op,
			"The host of the video, or of a redirect, was not found, or its address is not public https.", err)
	case errors.Is(err, file.ErrRedirects):
		return fault.Wrap(fault.Loop, op, "The video's server redirects too often.", err)
	}
	return fault.Wrap(fault.Upstream, op, "The video's server does not answer.", err)
}
