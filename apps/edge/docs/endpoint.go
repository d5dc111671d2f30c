package docs

import (
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/page"
	"crier/apps/edge/route"
	"crier/platform/fault"
)

// DocumentPath is the path of the OpenAPI document that describes all routes. The document at
// PublicDocumentPath describes only the public API.
const DocumentPath = "/openapi.json"

// Deps holds the dependencies of an API.
type Deps struct {
	// Site returns the pages and documents. Every call returns the same Site.
	Site func() (*Site, error)
}

// API provides the documentation's endpoints, one per exported method. It is safe for concurrent
// use.
type API struct{ deps Deps }

// NewAPI returns an API that uses d. It does not check that all fields of d are set.
func NewAPI(d Deps) *API { return &API{deps: d} }

// GetDocument returns the endpoint for the OpenAPI document with all routes.
func (a *API) GetDocument() route.Endpoint {
	return a.documentOf("Get this OpenAPI document", func(site *Site) *page.Asset { return site.Document })
}

// GetPublicDocument returns the endpoint for the public API's OpenAPI document.
func (a *API) GetPublicDocument() route.Endpoint {
	return a.documentOf("Get the OpenAPI document of the public API",
		func(site *Site) *page.Asset { return site.PublicDocument })
}

// documentOf returns the endpoint for a document that pages from any origin can read.
func (a *API) documentOf(summary string, of func(*Site) *page.Asset) route.Endpoint {
	d := huma.Operation{Summary: summary, Tags: []string{"Service"}}
	return route.Raw(d, func(c *fiber.Ctx) error {
		site, err := a.deps.Site()
		if err != nil {
			return err
		}
		c.Set(fiber.HeaderAccessControlAllowOrigin, "*")
		return of(site).Send(c)
	}, route.Content(http.StatusOK, "The document.", fiber.MIMEApplicationJSON, &huma.Schema{Type: huma.TypeObject}))
}

// GetReference returns the endpoint for the public API reference.
func (a *API) GetReference() route.Endpoint {
	d := huma.Operation{Summary: "Get the public API reference as a web page", Tags: []string{"Service"}}
	return route.Raw(d, func(c *fiber.Ctx) error { return a.sendPage(c, "") }, page.Answer("The page."))
}

// GetPage returns the endpoint for the pages that GetReference and GetManualPage do not serve.
func (a *API) GetPage() route.Endpoint {
	d := huma.Operation{
		Summary: "Get a documentation page", Tags: []string{"Service"}, Errors: []int{http.StatusNotFound},
		Parameters: []*huma.Param{{
			Name: "page", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString},
			Description: strings.Join(slices.DeleteFunc(Pages(), func(name string) bool {
				return name == "" || strings.Contains(name, "/")
			}), ", ") + ", or console.",
		}},
	}
	return route.Raw(d, func(c *fiber.Ctx) error { return a.sendPage(c, c.Params("page")) }, page.Answer("The page."))
}

// GetManualPage returns the endpoint for all pages of the manual except the first.
func (a *API) GetManualPage() route.Endpoint {
	d := huma.Operation{
		Summary: "Get a manual page", Tags: []string{"Service"}, Errors: []int{http.StatusNotFound},
		Parameters: []*huma.Param{
			page.PathParam("chapter", "self-hosting or developing."), page.PathParam("page", "Example: install."),
		},
	}
	return route.Raw(d, func(c *fiber.Ctx) error {
		return a.sendPage(c, c.Params("chapter")+"/"+c.Params("page"))
	}, page.Answer("The page."))
}

func (a *API) sendPage(c *fiber.Ctx, name string) error {
	site, err := a.deps.Site()
	if err != nil {
		return err
	}
	asset, ok := site.Page(name)
	if !ok {
		return fault.New(fault.NotFound, "docs.sendPage", "There is no such page.")
	}
	return asset.Send(c)
}

// GetConsoleFile returns the endpoint for the files that the console loads.
func (a *API) GetConsoleFile() route.Endpoint {
	d := huma.Operation{
		Summary: "Get a console file", Tags: []string{"Service"}, Errors: []int{http.StatusNotFound},
		Parameters: []*huma.Param{{Name: "file", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}}},
	}
	return route.Raw(d, func(c *fiber.Ctx) error {
		site, err := a.deps.Site()
		if err != nil {
			return err
		}
		file, ok := site.ConsoleFile(c.Params("file"))
		if !ok {
			return fault.New(fault.NotFound, "docs.getConsoleFile", "There is no such file.")
		}
		return file.Send(c)
	}, route.Content(http.StatusOK, "The file.", fiber.MIMEOctetStream, &huma.Schema{Type: huma.TypeString}))
}
