package media

import (
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/blob"
	"crier/platform/fault"
)

// File returns the endpoint that serves a file at its public URL.
func (a *API) File() route.Endpoint {
	text := &huma.Schema{Type: huma.TypeString}
	d := huma.Operation{
		Summary: "Get an uploaded file, or a range of it", Tags: []string{"Files"}, Errors: []int{404, 416, 500},
		Parameters: []*huma.Param{
			{Name: "key", In: "path", Required: true, Schema: text},
			{Name: "file", In: "path", Required: true, Schema: text},
			{Name: "Range", In: "header", Schema: text, Description: "A single range of bytes."},
		},
	}
	binary := &huma.Schema{Type: huma.TypeString, Format: "binary"}
	return route.Raw(d, a.file,
		route.Content(http.StatusOK, "The file.", fiber.MIMEOctetStream, binary),
		route.Content(http.StatusPartialContent, "The requested range.", fiber.MIMEOctetStream, binary))
}

// filePolicy keeps browsers from running scripts in a file.
const filePolicy = "sandbox; default-src 'none'"

// file streams an uploaded file. A file never changes, so clients can cache it indefinitely.
func (a *API) file(c *fiber.Ctx) error {
	name, err := url.PathUnescape(c.Params("file"))
	if err != nil {
		return fault.Wrap(fault.NotFound, "media.file", "There is no such file.", err)
	}
	return a.sendFile(c, c.Params("key"), name, func() {})
}

// sendFile sets a file as the response body. key and file are the decoded parts of the file's
// public path. sent is called once the body has been sent. If the response has no body, sent is not
// called.
func (a *API) sendFile(c *fiber.Ctx, key, file string, sent func()) error {
	m, f, err := a.deps.Files.Open(c.UserContext(), key, file)
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentDisposition, mime.FormatMediaType("inline", map[string]string{"filename": m.FileName()}))
	c.Set(fiber.HeaderCacheControl, "public, max-age=31536000, immutable")
	c.Set("Cross-Origin-Resource-Policy", "cross-origin")
	return a.sendBytes(c, m.ContentType, `"`+key+`"`, f, sent)
}

// Original returns the endpoint that serves a file as it was uploaded.
func (a *API) Original() route.Endpoint {
	text := &huma.Schema{Type: huma.TypeString}
	d := huma.Operation{
		Summary: "Get a file as it was uploaded, or a range of it", Tags: []string{"Files"},
		Errors: []int{404, 416, 500},
		Description: "The file includes its metadata, such as where a photo was taken. Files that are published or " +
			"served without a key have no metadata.",
		Parameters: []*huma.Param{
			{Name: "id", In: "path", Required: true, Schema: text, Description: "Id of the file."},
			{Name: "Range", In: "header", Schema: text, Description: "A single range of bytes."},
		},
	}
	binary := &huma.Schema{Type: huma.TypeString, Format: "binary"}
	return route.Raw(d, a.original,
		route.Content(http.StatusOK, "The file.", fiber.MIMEOctetStream, binary),
		route.Content(http.StatusPartialContent, "The requested range.", fiber.MIMEOctetStream, binary))
}

// original sends an uploaded file to the organization that owns it. The transfer counts toward the
// organization's limit until the file has been sent.
func (a *API) original(c *fiber.Ctx) error {
	leave, err := a.deps.Transfers.EnterOriginal(c)
	if err != nil {
		return err
	}
	leave = sync.OnceFunc(leave)
	err = a.sendOriginal(c, leave)
	if err != nil || c.Response().BodyStream() == nil {
		leave()
	}
	return err
}

func (a *API) sendOriginal(c *fiber.Ctx, sent func()) error {
	m, f, err := a.deps.Files.Original(c.UserContext(), request.From(c.Context()).Principal, c.Params("id"))
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentDisposition, mime.FormatMediaType("attachment", map[string]string{"filename": m.FileName()}))
	c.Set(fiber.HeaderCacheControl, "private, no-store")
	return a.sendBytes(c, m.ContentType, `"`+m.ID.String()+`"`, f, sent)
}

// sendBytes sets f, or the requested range of f, as the response body. It takes ownership of f and
// closes it.
func (a *API) sendBytes(c *fiber.Ctx, contentType, tag string, f blob.File, sent func()) error {
	c.Set(fiber.HeaderETag, tag)
	c.Set(fiber.HeaderAcceptRanges, "bytes")
	c.Set(fiber.HeaderContentType, contentType)
	c.Set(fiber.HeaderContentSecurityPolicy, filePolicy)
	if strings.Contains(c.Get(fiber.HeaderIfNoneMatch), tag) {
		c.Status(http.StatusNotModified)
		return closeFile(f)
	}
	start, length, err := requestedRange(c, tag, f.Size())
	if err != nil {
		c.Set(fiber.HeaderContentRange, "bytes */"+strconv.FormatInt(f.Size(), 10))
		c.Set(fiber.HeaderCacheControl, "no-store")
		return errors.Join(err, closeFile(f))
	}
	if _, err := f.Seek(start, io.SeekStart); err != nil {
		return errors.Join(fault.Wrap(fault.Internal, "media.file", "", err), f.Close())
	}
	c.Context().SetBodyStream(a.download(c, io.LimitReader(f, length), closeBoth(f, sent)), int(length))
	return nil
}

// download returns a response body that has the longer time limit set by Transfers.BeginDownload.
func (a *API) download(c *fiber.Ctx, part io.Reader, f io.Closer) fileSection {
	end := a.deps.Transfers.BeginDownload(c)
	// The server calls close when only the last bytes remain to be written.
	return fileSection{Reader: part, close: func() error {
		return errors.Join(end(), f.Close())
	}}
}

// closeFile closes a file that will not be sent. If the file cannot be closed, closeFile returns
// Internal.
func closeFile(f io.Closer) error {
	if err := f.Close(); err != nil {
		return fault.Wrap(fault.Internal, "media.file", "", err)
	}
	return nil
}

// fileSection is the section of a file to send. The server closes it after the last read.
type fileSection struct {
	io.Reader
	close func() error
}

func (s fileSection) Close() error { return s.close() }

var hugeNumber = regexp.MustCompile(`0*[1-9][0-9]{18,}`)

// requestedRange returns the start and the length of the requested byte range. For a partial
// response, it also sets the status and the Content-Range header. If the request does not have
// exactly one byte range, or if If-Range does not match tag, it returns the whole file. If the
// range is outside the file, it returns a 416 error.
func requestedRange(c *fiber.Ctx, tag string, size int64) (start, length int64, err error) {
	header := c.Get(fiber.HeaderRange)
	if since := c.Get(fiber.HeaderIfRange); since != "" && since != tag {
		header = ""
	}
	if header == "" || strings.Contains(header, ",") || !strings.HasPrefix(header, "bytes=") {
		return 0, size, nil
	}
	// ParseByteRange fails on numbers that overflow int64. Replace them with the largest int64,
	// which is also beyond the end of every file.
	header = hugeNumber.ReplaceAllString(header, strconv.Itoa(math.MaxInt64))
	from, to, err := fasthttp.ParseByteRange([]byte(header), int(size))
	if err != nil || size == 0 {
		return 0, 0, fiber.ErrRequestedRangeNotSatisfiable
	}
	c.Status(http.StatusPartialContent)
	c.Set(fiber.HeaderContentRange, "bytes "+strconv.Itoa(from)+"-"+strconv.Itoa(to)+"/"+strconv.FormatInt(size, 10))
	return int64(from), int64(to - from + 1), nil
}
