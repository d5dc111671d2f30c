package media

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/fault"
)

// Stream returns the endpoint that plays a video.
func (a *API) Stream() route.Endpoint {
	text := &huma.Schema{Type: huma.TypeString}
	d := huma.Operation{
		Summary: "Play a video from this service or, with a session, from another server", Tags: []string{"Files"},
		Errors: []int{400, 404, 416, 429, 500, 502, 508},
		Parameters: []*huma.Param{
			{Name: "url", In: "query", Required: true, Schema: text, Description: "An https URL that ends in .mp4."},
			{Name: "Range", In: "header", Schema: text, Description: "A single range of bytes."},
		},
	}
	binary := &huma.Schema{Type: huma.TypeString, Format: "binary"}
	return route.Raw(d, a.stream,
		route.Content(http.StatusOK, "The video.", videoType, binary),
		route.Content(http.StatusPartialContent, "The requested range.", videoType, binary))
}

const videoType = "video/mp4"

// stream sends either an uploaded video, in the same way as /files, or a video from another server.
// Only a signed-in person can request a video from another server. When the transfer ends, the
// connection to that server is closed.
func (a *API) stream(c *fiber.Ctx) error {
	if err := a.deps.Gate.AdmitStream(c.UserContext(), request.From(c.Context()).From); err != nil {
		return err
	}
	leave, err := a.deps.Transfers.EnterStream(c)
	if err != nil {
		return err
	}
	leave = sync.OnceFunc(leave)
	err = a.openStream(c, leave)
	if err != nil || c.Response().BodyStream() == nil {
		leave()
	}
	return err
}

// openStream sets the requested video as the response body. leave is called once the body has been
// sent.
func (a *API) openStream(c *fiber.Ctx, leave func()) error {
	address := c.Query("url")
	if key, file, ours := a.deps.Files.OwnFile(address); ours {
		return a.sendFile(c, key, file, leave)
	}
	if request.From(c.Context()).Principal.Person.IsZero() {
		return fault.New(fault.Invalid, "media.stream",
			"Without a session, url must be the address of a video on this service.")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.UserContext()), a.deps.StreamTimeout)
	v, err := a.deps.Files.Stream(ctx, address, c.Get(fiber.HeaderRange))
	if err != nil {
		cancel()
		return err
	}
	c.Set(fiber.HeaderContentType, videoType)
	c.Set(fiber.HeaderAcceptRanges, "bytes")
	c.Set(fiber.HeaderContentSecurityPolicy, filePolicy)
	if v.ContentRange != "" {
		c.Status(http.StatusPartialContent)
		c.Set(fiber.HeaderContentRange, v.ContentRange)
	}
	body := a.download(c, v.Body, closer(func() error {
		defer leave()
		defer cancel()
		return v.Body.Close()
	}))
	c.Context().SetBodyStream(body, int(v.Size))
	return nil
}

// closer adapts a function to io.Closer.
type closer func() error

func (f closer) Close() error { return f() }

// closeBoth returns a closer that closes f and then calls after.
func closeBoth(f io.Closer, after func()) closer {
	return func() error {
		defer after()
		return f.Close()
	}
}
