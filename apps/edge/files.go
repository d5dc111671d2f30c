package edge

import (
	"errors"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"crier/apps/edge/route"
	"crier/platform/clock"
	"crier/platform/fault"
)

func (s *Server) mountFiles(t *route.Table) {
	op := huma.Operation{
		OperationID: "file", Method: http.MethodGet, Path: "/files/{key}/{file}", Summary: "Read an uploaded file, whole or in a range", Tags: []string{"Files"},
		Errors: []int{404, 416, 500}, Parameters: []*huma.Param{
			{Name: "key", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}},
			{Name: "file", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}},
			{Name: "Range", In: "header", Schema: &huma.Schema{Type: huma.TypeString}, Description: "One range of bytes."},
		},
	}
	binary := &huma.Schema{Type: huma.TypeString, Format: "binary"}
	op = route.Content(op, http.StatusOK, "The file.", "application/octet-stream", binary)
	op = route.Content(op, http.StatusPartialContent, "The range of the file.", "application/octet-stream", binary)
	t.Raw(op, s.file)
}

// file streams a medium. It never changes, so it may be kept for ever; whatever it holds, it may run nothing.
func (s *Server) file(c *fiber.Ctx) error {
	key := c.Params("key")
	m, f, err := s.deps.Media.Open(c.UserContext(), key, c.Params("file"))
	if err != nil {
		return err
	}
	tag := `"` + key + `"`
	c.Set(fiber.HeaderETag, tag)
	c.Set(fiber.HeaderAcceptRanges, "bytes")
	c.Set(fiber.HeaderContentType, m.ContentType)
	c.Set(fiber.HeaderContentDisposition, "inline")
	c.Set(fiber.HeaderCacheControl, "public, max-age=31536000, immutable")
	c.Set(fiber.HeaderContentSecurityPolicy, "sandbox; default-src 'none'")
	c.Set("Cross-Origin-Resource-Policy", "cross-origin")
	if strings.Contains(c.Get(fiber.HeaderIfNoneMatch), tag) {
		c.Status(http.StatusNotModified)
		return closing(f)
	}
	start, length, err := s.window(c, tag, f.Size())
	if err != nil {
		c.Set(fiber.HeaderContentRange, "bytes */"+strconv.FormatInt(f.Size(), 10))
		c.Set(fiber.HeaderCacheControl, "no-store")
		return errors.Join(err, closing(f))
	}
	c.Context().SetBodyStream(s.download(c, io.NewSectionReader(f, start, length), f), int(length))
	return nil
}

// download is an answer that has the time that it needs on the wire, as long as it is read with the least rate. Other
// answers have the time of a request.
func (s *Server) download(c *fiber.Ctx, part io.Reader, f io.Closer) section {
	own, ok := c.Context().Conn().(*conn)
	if !ok {
		return section{part, f.Close}
	}
	own.out = s.pace()
	return section{part, func() error { // called when all but the last bytes are on the wire
		own.out = nil
		return errors.Join(own.SetWriteDeadline(clock.System{}.Now().Add(s.cfg.Timeout)), f.Close())
	}}
}

func closing(f io.Closer) error {
	if err := f.Close(); err != nil {
		return fault.Wrap(fault.Internal, "edge.file", "", err)
	}
	return nil
}

type section struct {
	io.Reader
	close func() error
}

// Close is called by the server.
func (s section) Close() error { return s.close() }

var hugeNumber = regexp.MustCompile(`0*[1-9][0-9]{18,}`)

// window finds the part that was asked for, and says so; several ranges at once, or ranges of another file, mean the whole.
func (s *Server) window(c *fiber.Ctx, tag string, size int64) (start, length int64, err error) {
	asked := c.Get(fiber.HeaderRange)
	if since := c.Get(fiber.HeaderIfRange); since != "" && since != tag {
		asked = ""
	}
	if asked == "" || strings.Contains(asked, ",") || !strings.HasPrefix(asked, "bytes=") {
		return 0, size, nil
	}
	// A number beyond int64 is beyond the end of every file, and is clamped as such.
	asked = hugeNumber.ReplaceAllString(asked, strconv.Itoa(math.MaxInt64))
	from, to, err := fasthttp.ParseByteRange([]byte(asked), int(size))
	if err != nil || size == 0 {
		return 0, 0, fiber.ErrRequestedRangeNotSatisfiable
	}
	c.Status(http.StatusPartialContent)
	c.Set(fiber.HeaderContentRange, "bytes "+strconv.Itoa(from)+"-"+strconv.Itoa(to)+"/"+strconv.FormatInt(size, 10))
	return int64(from), int64(to - from + 1), nil
}
