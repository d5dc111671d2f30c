package edge

import (
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/docs"
	htmlpage "crier/apps/edge/page"
	"crier/apps/edge/route"
	"crier/platform/fault"
)

//go:generate go test . -run TestOpenAPI -update

// renderSite returns the OpenAPI document and the pages of the documentation. They name the Missing routes, but not the
// Planned ones. Its error is Internal.
func (s *Server) renderSite() (*docs.Site, error) {
	document, err := s.document()
	if err != nil {
		return nil, err
	}
	o := docs.Options{
		BaseURL: s.cfg.Base(), Limits: s.documentedLimits(), KeyLife: keyNote(s.deps.Limits.IdempotencyKeys),
	}
	for _, r := range s.table {
		if r.State == Missing {
			o.Missing = append(o.Missing, r.String())
		}
	}
	return docs.New(s.lines.API().OpenAPI(), document, o)
}

const documentPath = "/openapi.json"

// getDocument returns the endpoint of the OpenAPI document of all routes.
func (s *Server) getDocument() route.Endpoint {
	return s.sendDocument("Get this document", func(site *docs.Site) *htmlpage.Asset { return site.Document })
}

// getPublicDocument returns the endpoint of the OpenAPI document of the public API.
func (s *Server) getPublicDocument() route.Endpoint {
	return s.sendDocument("Get the OpenAPI document of the public API alone",
		func(site *docs.Site) *htmlpage.Asset { return site.PublicDocument })
}

// sendDocument returns the endpoint of a document that pages of all origins may read.
func (s *Server) sendDocument(summary string, of func(*docs.Site) *htmlpage.Asset) route.Endpoint {
	d := huma.Operation{Summary: summary, Tags: []string{"Service"}}
	return route.Raw(d, func(c *fiber.Ctx) error {
		site, err := s.site()
		if err != nil {
			return err
		}
		c.Set(fiber.HeaderAccessControlAllowOrigin, "*")
		return of(site).Send(c)
	}, route.Content(http.StatusOK, "The document.", fiber.MIMEApplicationJSON, &huma.Schema{Type: huma.TypeObject}))
}

var htmlPage = route.Content(http.StatusOK, "The page.", fiber.MIMETextHTML, &huma.Schema{Type: huma.TypeString})

// getDocs returns the endpoint of the reference of the public API.
func (s *Server) getDocs() route.Endpoint {
	d := huma.Operation{Summary: "Get the reference of the public API as a web page", Tags: []string{"Service"}}
	return route.Raw(d, func(c *fiber.Ctx) error { return s.sendPage(c, "") }, htmlPage)
}

// getDocsPage returns the endpoint of the other pages.
func (s *Server) getDocsPage() route.Endpoint {
	d := huma.Operation{
		Summary: "Get another page of the documentation", Tags: []string{"Service"}, Errors: []int{http.StatusNotFound},
		Parameters: []*huma.Param{{
			Name: "page", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString},
			Description: strings.Join(slices.DeleteFunc(docs.Pages(), func(name string) bool { return name == "" }), ", ") +
				" or console.",
		}},
	}
	return route.Raw(d, func(c *fiber.Ctx) error { return s.sendPage(c, c.Params("page")) }, htmlPage)
}

func (s *Server) sendPage(c *fiber.Ctx, name string) error {
	site, err := s.site()
	if err != nil {
		return err
	}
	asset, ok := site.Page(name)
	if !ok {
		return fault.New(fault.NotFound, "edge.sendPage", "There is no such page.")
	}
	return asset.Send(c)
}

// getConsoleFile returns the endpoint of the files that the console loads.
func (s *Server) getConsoleFile() route.Endpoint {
	d := huma.Operation{
		Summary: "Get a file of the console", Tags: []string{"Service"}, Errors: []int{http.StatusNotFound},
		Parameters: []*huma.Param{{Name: "file", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}}},
	}
	return route.Raw(d, func(c *fiber.Ctx) error {
		site, err := s.site()
		if err != nil {
			return err
		}
		file, ok := site.ConsoleFile(c.Params("file"))
		if !ok {
			return fault.New(fault.NotFound, "edge.getConsoleFile", "There is no such file.")
		}
		return file.Send(c)
	}, route.Content(http.StatusOK, "The file.", fiber.MIMEOctetStream, &huma.Schema{Type: huma.TypeString}))
}
