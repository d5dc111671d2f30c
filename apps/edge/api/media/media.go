// Package media provides the endpoints for uploaded files.
package media

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/admission"
	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/blob"
	"crier/platform/fault"
	"crier/publishing"
	"crier/tenancy"
)

// Deps holds an API's dependencies.
type Deps struct {
	Base record.Base
	// UploadLimit is the maximum size of a whole upload request, in bytes.
	UploadLimit int64
	// StreamTimeout limits how long the transfer of a video from another server may take.
	StreamTimeout time.Duration
	Media         Media
	Files         Files
	Transfers     Transfers
	Gate          *admission.Gate
}

// API provides the endpoints, one per exported method. It is safe for concurrent use.
type API struct{ deps Deps }

// New returns an API. It does not check that d is complete.
func New(d Deps) *API { return &API{deps: d} }

// UploadFromURL returns the endpoint that downloads a file from another server and stores it.
func (a *API) UploadFromURL() route.Endpoint {
	d := route.Describe("Files", "Download an image or video from a public URL and store it", 400, 408, 413)
	d.Description = "The URL must be public and use http or https on port 80 or 443. At most 3 redirects are " +
		"followed. The response is sent after the file is stored. For an upload address from the MCP tool " +
		"service_upload_from_url, the response is the file that was uploaded to it."
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.uploadFromURL)
}

type fromURLInput struct {
	Body struct {
		URL string `json:"url" minLength:"1" maxLength:"4096" example:"https://example.com/cat.png" doc:"URL of the image or video."`
	}
}

type mediumOutput struct{ Body record.Medium }

func (a *API) uploadFromURL(ctx context.Context, in *fromURLInput) (*mediumOutput, error) {
	m, err := a.deps.Media.UploadFromURL(ctx, request.Principal(ctx), in.Body.URL)
	if err != nil {
		return nil, err
	}
	return &mediumOutput{Body: a.deps.Base.Medium(m)}, nil
}

// ListMedia returns the endpoint that lists the organization's files.
func (a *API) ListMedia() route.Endpoint {
	d := route.Describe("Files", "List uploaded files, newest first, 18 per page", 400)
	d.Description = "In the response, pages is the number of pages. File URLs are public."
	d.SkipValidateParams = true // see route.OptionalInt
	return route.JSON(d, a.listMedia)
}

type listMediaInput struct {
	Page   route.OptionalInt `query:"page" doc:"Page number, starting at 1 (default 1)."`
	Search string            `query:"search" doc:"Only files whose names contain this text."`
}

// MediaPage is a page of uploaded files.
type MediaPage struct {
	Pages   int             `json:"pages" doc:"Number of pages; 0 if there are no files."`
	Results []record.Medium `json:"results" doc:"Files on the page, newest first."`
}

type mediaPageOutput struct{ Body MediaPage }

func (a *API) listMedia(ctx context.Context, in *listMediaInput) (*mediaPageOutput, error) {
	page, wrong := in.Page.Between("page", 1, route.MaxPage, 1)
	if len(wrong) > 0 {
		return nil, &fault.Error{Kind: fault.Invalid, Op: "media.listMedia", Message: "The page is not valid.", Fields: wrong}
	}
	list, err := a.deps.Media.List(ctx, request.Principal(ctx), publishing.ListMedia{Page: page, Search: in.Search})
	if err != nil {
		return nil, err
	}
	out := &mediaPageOutput{Body: MediaPage{Pages: list.Pages, Results: make([]record.Medium, 0, len(list.Media))}}
	for _, m := range list.Media {
		out.Body.Results = append(out.Body.Results, a.deps.Base.Medium(m))
	}
	return out, nil
}

// DeleteMedium returns the endpoint that deletes a file.
func (a *API) DeleteMedium() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Files", "Delete an uploaded file, unless a scheduled post uses it", 404, 409),
		"409: a scheduled post uses the file. Published posts keep the file on the platform. A draft that uses the "+
			"file cannot be scheduled until the file is removed from the draft."), a.deleteMedium)
}

type mediumInput struct {
	ID string `path:"id" doc:"File id."`
}

func (a *API) deleteMedium(ctx context.Context, in *mediumInput) (*record.NamedOutput, error) {
	if err := a.deps.Media.Delete(ctx, request.Principal(ctx), in.ID); err != nil {
		return nil, err
	}
	return record.NewNamed(in.ID), nil
}

// DescribeMedium returns the endpoint that changes a file's alternative text.
func (a *API) DescribeMedium() route.Endpoint {
	d := route.Describe("Files", "Change the alternative text of an uploaded file", 400, 404, 413)
	d.Description = "Posts created later use this text for images without an alternative text of their own."
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.describeMedium)
}

type describeInput struct {
	Body struct {
		ID  string  `json:"id" maxLength:"255"`
		Alt *string `json:"alt,omitempty" nullable:"true" maxLength:"8000" doc:"At most 2000 characters. If null or absent, the alternative text is removed."`
	}
}

func (a *API) describeMedium(ctx context.Context, in *describeInput) (*mediumOutput, error) {
	alt := ""
	if in.Body.Alt != nil {
		alt = *in.Body.Alt
	}
	m, err := a.deps.Media.SetAlt(ctx, request.Principal(ctx), in.Body.ID, alt)
	if err != nil {
		return nil, err
	}
	return &mediumOutput{Body: a.deps.Base.Medium(m)}, nil
}

// Media stores and manages uploaded files.
type Media interface {
	// UploadFromURL downloads the file at a public URL and stores it in the same way as Upload. For
	// an upload address, it returns the file that was uploaded to it. It returns Invalid if the URL
	// is not public or cannot be read, or if nothing has been uploaded to the address.
	UploadFromURL(ctx context.Context, p tenancy.Principal, address string) (publishing.Medium, error)
	// List returns a page of files, or Invalid if the page number or the search is invalid.
	List(ctx context.Context, p tenancy.Principal, q publishing.ListMedia) (publishing.MediaPage, error)
	// SetAlt changes a file's alternative text.
	SetAlt(ctx context.Context, p tenancy.Principal, medium, alt string) (publishing.Medium, error)
	// Delete deletes a file. It returns Conflict if the file is used by a post that is queued or
	// being sent.
	Delete(ctx context.Context, p tenancy.Principal, medium string) error
	// Upload reads a file from r and stores it. It detects the type from the content, so filename
	// may be any text. It returns Invalid if the file is incomplete or its type is not accepted. It
	// returns TooLarge if the file exceeds its size limit or the organization's remaining storage.
	//
	// A rejected file is not stored. After a crash, either the file is recorded or the stored bytes
	// are never served.
	Upload(ctx context.Context, p tenancy.Principal, filename string, r io.Reader) (publishing.Medium, error)
	// UploadTo is like Upload, but uses up the upload address with the given token. It returns
	// Conflict if the address has already taken a file, and NotFound if the principal's
	// organization has no such address.
	UploadTo(
		ctx context.Context, p tenancy.Principal, token, filename string, r io.Reader,
	) (publishing.Medium, error)
}

// Files opens files for sending.
type Files interface {
	// Open returns the file at the given public path, with its metadata removed. It returns
	// NotFound if either part of the path is wrong. The caller must close the file.
	Open(ctx context.Context, key, file string) (publishing.Medium, blob.File, error)
	// Original returns one of the organization's files by id, as it was uploaded. It returns
	// NotFound if the organization has no such file. The caller must close the file.
	Original(ctx context.Context, p tenancy.Principal, medium string) (publishing.Medium, blob.File, error)
	// OwnFile splits the URL of a file on this service into the two parts of its public path, which
	// Open accepts. ours is false for any other URL.
	OwnFile(address string) (key, file string, ours bool)
	// Stream opens a video on another server. requested is the value of a Range header. ctx limits
	// the whole transfer, even after Stream has returned. Stream returns Invalid if the URL is not
	// public or does not lead to a video, and Loop if there are too many redirects. It returns
	// Upstream if the server does not respond or does not have the video.
	Stream(ctx context.Context, address, requested string) (publishing.VideoStream, error)
}

// Transfers limits how many files are sent concurrently and how slow a transfer may be.
type Transfers interface {
	// EnterOriginal waits until one more original may be sent to the organization that made the
	// request. It returns RateLimited if too many originals are already being sent. The caller must
	// call leave once the original has been sent.
	EnterOriginal(c *fiber.Ctx) (leave func(), err error)
	// EnterStream is like EnterOriginal, but limits how many videos are sent to each client
	// address.
	EnterStream(c *fiber.Ctx) (leave func(), err error)
	// BeginDownload replaces the response timeout with a longer one that applies as long as the
	// client reads at a minimum speed. The caller must call end when only the last bytes remain to
	// be written. end returns any error from the connection.
	BeginDownload(c *fiber.Ctx) (end func() error)
}
