package media

import (
	"context"
	"io"
	"mime"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/publishing"
	"crier/tenancy"
)

// TokenParam is the path parameter with the token of an upload address.
const TokenParam = "token"

// UploadTo returns the endpoint that stores a file sent to an upload address.
func (a *API) UploadTo() route.Endpoint { return a.uploadTo("Upload one file to an upload address") }

// PutTo is UploadTo for clients that send a file with PUT.
func (a *API) PutTo() route.Endpoint {
	return a.uploadTo("Upload one file to an upload address, with PUT")
}

func (a *API) uploadTo(summary string) route.Endpoint {
	d := route.Describe("Files", summary, 400, 408, 409, 413)
	d.Description = "The MCP tool service_upload_from_url, called without url, returns an upload address. A request " +
		"to it needs no other credential, and acts as the API key or access token that requested the address. Send the file " +
		"as the whole body, or in the field named file of a multipart form. The address expires after 15 minutes " +
		"and accepts one file. After that, the response is 409 with the id of the stored file. A failed upload does not " +
		"use up the address. The file type is detected from the content."
	binary := &huma.Schema{Type: huma.TypeString, Format: "binary"}
	form := &huma.Schema{
		Type: huma.TypeObject, Required: []string{"file"}, Properties: map[string]*huma.Schema{"file": binary},
	}
	d.Parameters = []*huma.Param{{
		Name: TokenParam, In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString},
		Description: "Token of the upload address.",
	}}
	d.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"multipart/form-data": {Schema: form}, fiber.MIMEOctetStream: {Schema: binary},
	}}
	return route.Raw(d, a.receiveTo, route.Answer[record.Medium](http.StatusCreated, "The stored file."))
}

// receiveTo streams the file to Media.UploadTo.
func (a *API) receiveTo(c *fiber.Ctx) error {
	token := c.Params(TokenParam)
	return a.storeSent(c, sentFile, func(
		ctx context.Context, p tenancy.Principal, name string, r io.Reader,
	) (publishing.Medium, error) {
		return a.deps.Media.UploadTo(ctx, p, token, name, r)
	})
}

// sentFile returns the file of a form or, for any other type of body, the whole body without a
// name. The type is not checked further, because curl --data-binary labels any body as a
// URL-encoded form.
func sentFile(c *fiber.Ctx) (name string, file *formFile, err error) {
	kind, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	if err == nil && kind == "multipart/form-data" {
		return fileOfForm(c)
	}
	info := request.From(c.Context())
	whole := func() error { return nil }
	return "", &formFile{Reader: info.Body, end: whole, confirm: info.Confirm}, nil
}
