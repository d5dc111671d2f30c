package page

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/route"
)

// Answer describes a response that is an HTML page.
func Answer(description string) route.Detail {
	return route.Content(http.StatusOK, description, fiber.MIMETextHTML, &huma.Schema{Type: huma.TypeString})
}

// PathParam describes a text parameter in the path.
func PathParam(name, description string) *huma.Param {
	return &huma.Param{
		Name: name, In: "path", Required: true, Description: description, Schema: &huma.Schema{Type: huma.TypeString},
	}
}

// QueryParam describes an optional text parameter in the query.
func QueryParam(name, description string) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: description, Schema: &huma.Schema{Type: huma.TypeString}}
}
