package media

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/publishing"
	"crier/tenancy"
)

const opUpload = "media.upload"

// Upload returns the endpoint that stores a file. Its handler streams the body, so no handler that
// runs earlier may read the body.
func (a *API) Upload() route.Endpoint {
	d := route.Describe("Files", "Upload an image (png, jpg, jpeg, gif) or a video (mp4)", 400, 408, 413)
	d.Description = "Send a multipart form with the file in the field named file. The file type is detected from the " +
		"content; a file name whose extension belongs to a different type is rejected. Use the returned id in " +
		"image[] in POST /posts. Each upload is a separate file, but identical bytes are stored only once."
	form := &huma.Schema{
		Type: huma.TypeObject, Required: []string{"file"},
		Properties: map[string]*huma.Schema{"file": {Type: huma.TypeString, Format: "binary"}},
	}
	d.RequestBody = &huma.RequestBody{
		Required: true, Content: map[string]*huma.MediaType{"multipart/form-data": {Schema: form}},
	}
	return route.Raw(d, a.receive, route.Answer[record.Medium](http.StatusCreated, "The stored file."))
}

// receive streams the form field "file" to Media.Upload.
func (a *API) receive(c *fiber.Ctx) error { return a.storeSent(c, fileOfForm, a.deps.Media.Upload) }

// storeSent passes the file that find finds in the body to store, and responds with the stored
// file. It does not buffer the file in memory or on disk.
func (a *API) storeSent(
	c *fiber.Ctx, find func(c *fiber.Ctx) (name string, file *formFile, err error),
	store func(ctx context.Context, p tenancy.Principal, name string, r io.Reader) (publishing.Medium, error),
) error {
	info := request.From(c.Context())
	if err := info.Body.Limit(a.deps.UploadLimit); err != nil {
		return err
	}
	name, file, err := find(c)
	if err != nil {
		return err
	}
	medium, err := store(c.UserContext(), info.Principal, name, file)
	return a.sendStored(c, file, medium, err)
}

// fileOfForm returns the form field "file" and its file name.
func fileOfForm(c *fiber.Ctx) (name string, file *formFile, err error) {
	info := request.From(c.Context())
	form, err := newUploadForm(c.Get(fiber.HeaderContentType), info.Body)
	if err != nil {
		return "", nil, err
	}
	part, err := form.file()
	if err != nil {
		return "", nil, err
	}
	return part.FileName(), &formFile{Reader: part, end: form.end, confirm: info.Confirm}, nil
}

// sendStored responds with a stored file. err is the error from storing it.
func (a *API) sendStored(c *fiber.Ctx, file *formFile, medium publishing.Medium, err error) error {
	if file.refused != nil {
		return file.refused
	}
	if err != nil {
		return uploadFault(request.From(c.Context()).Body.Err(), file.err, err)
	}
	return c.Status(http.StatusCreated).JSON(a.deps.Base.Medium(medium))
}

// uploadFault returns the fault for an upload that failed with err. body and file are the errors
// from reading the body and the file. If either is set, it takes precedence, because it caused err.
func uploadFault(body, file, err error) error {
	switch {
	case body != nil:
		return body
	case errors.Is(file, io.ErrUnexpectedEOF):
		return fault.Wrap(fault.Invalid, opUpload, "The upload ended before the file did.", err)
	case file != nil:
		return fault.Wrap(fault.Invalid, opUpload,
			"The file is not encoded as its Content-Transfer-Encoding header says.", err)
	}
	return err
}

// formFile reads a file from a form, or a file that is the whole body. If a read fails with an
// error other than io.EOF, the error is kept in err.
//
// At the end of the file, formFile checks the rest of the form and confirms the credential. If
// either step fails, Read returns the error and keeps it in refused, so that the file is not
// stored.
type formFile struct {
	io.Reader
	end, confirm func() error
	err, refused error
}

func (f *formFile) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if f.refused == nil {
		f.refused = f.end()
	}
	if f.refused == nil {
		f.refused = f.confirm()
	}
	if f.refused != nil {
		return n, f.refused
	}
	return n, err
}

// uploadHead is the maximum number of bytes before the file's content, and also the maximum number
// after the content. The limit is needed because the headers of a part are kept in memory.
// uploadedName is the maximum length of the file name, in bytes.
const (
	uploadHead   = 64 << 10
	uploadedName = 1 << 10
	// shownField is the maximum length of a field name in a message, in characters.
	shownField = 60
)

// uploadForm reads a form with one file. Its methods return Invalid or the error from reading the
// body. They never return errors from package multipart, because those errors quote the body.
type uploadForm struct {
	body   *request.Body
	head   *headReader
	reader *multipart.Reader
}

func newUploadForm(contentType string, body *request.Body) (*uploadForm, error) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		return nil, fault.Wrap(fault.Invalid, opUpload, "Send the file as multipart/form-data, in the field file.", err)
	}
	head := &headReader{Reader: body, left: uploadHead}
	return &uploadForm{body: body, head: head, reader: multipart.NewReader(head, params["boundary"])}, nil
}

// file skips to the field "file" and returns it.
func (f *uploadForm) file() (*multipart.Part, error) {
	part, err := f.next("The content of the field file must begin within the first 64 KB of the body.")
	switch {
	case err != nil:
		return nil, err
	case part == nil:
		return nil, fault.New(fault.Invalid, opUpload, "There is no file. Send it in the field file.")
	case len(part.FileName()) > uploadedName:
		return nil, fault.New(fault.Invalid, opUpload, "The name of the file must have at most 1,024 bytes.")
	}
	f.head.found = true
	return part, nil
}

// end skips the fields after the file. It returns Invalid if there is a second file, which would
// otherwise be dropped silently.
func (f *uploadForm) end() error {
	f.head.found, f.head.left = false, uploadHead
	part, err := f.next("At most 64 KB of other fields may follow the file.")
	if err == nil && part != nil {
		err = fault.New(fault.Invalid, opUpload,
			"The form has more than one field file. Send each file in a separate request.")
	}
	return err
}

// next skips to the next field "file" and returns it, or returns nil if no such field is left. It
// returns Invalid with the message tooLong if headReader has reached its limit. It also returns
// Invalid if another field contains a file.
func (f *uploadForm) next(tooLong string) (*multipart.Part, error) {
	for {
		part, err := f.reader.NextPart()
		switch {
		case f.body.Err() != nil:
			return nil, f.body.Err()
		case f.head.refused:
			return nil, fault.New(fault.Invalid, opUpload, tooLong)
		case errors.Is(err, io.EOF):
			return nil, nil
		case err != nil:
			return nil, fault.New(fault.Invalid, opUpload, "The multipart body is not well formed.")
		case part.FormName() == "file":
			return part, nil
		case part.FileName() != "":
			name := []rune(part.FormName())
			return nil, fault.New(fault.Invalid, opUpload, fmt.Sprintf(
				"The form has a file in the field %q. Send one file, in the field file.",
				string(name[:min(len(name), shownField)])))
		}
	}
}

// headReader reads at most left more bytes as long as found is false. Beyond that, it sets refused
// and returns an error.
type headReader struct {
	io.Reader
	left           int
	found, refused bool
}

func (h *headReader) Read(p []byte) (int, error) {
	if h.found {
		return h.Reader.Read(p)
	}
	if h.left == 0 {
		h.refused = true
		return 0, io.ErrUnexpectedEOF
	}
	n, err := h.Reader.Read(p[:min(len(p), h.left)])
	h.left -= n
	return n, err
}
