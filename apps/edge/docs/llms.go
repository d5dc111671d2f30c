package docs

import (
	"fmt"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/page"
	"crier/apps/edge/route"
)

// GetLLMs returns the endpoint for /llms.txt, an overview of the service for language models.
func (a *API) GetLLMs() route.Endpoint {
	d := huma.Operation{Summary: "Get an overview for language models", Tags: []string{"Service"}}
	return route.Raw(d, func(c *fiber.Ctx) error {
		site, err := a.deps.Site()
		if err != nil {
			return err
		}
		return site.llms.Send(c)
	}, route.Content(200, "The overview, in Markdown.", fiber.MIMETextPlain, &huma.Schema{Type: huma.TypeString}))
}

// renderLLMs returns the overview. Its links are absolute, because a model may read it anywhere.
func renderLLMs(v view) (*page.Asset, error) {
	var b strings.Builder
	fmt.Fprintf(&b, `# Crier

> Crier publishes posts to social platforms for teams and agents. One call creates posts for several channels, each with
> its own content, and publishes them now, schedules them, or saves them as drafts.

An agent should use the MCP server. It needs no API key: it sends its user to a consent page.
A program should use the REST API with an API key.

## Agents

- [MCP server](%[1]s/mcp): 16 tools, Streamable HTTP, OAuth 2.1
- [How to connect an agent](%[1]s/docs/agents)
- [Authorization server metadata](%[1]s/.well-known/oauth-authorization-server)

## REST API

- [OpenAPI document of the public API](%[1]s/public/v1/openapi.json)
- [OpenAPI document of all routes](%[1]s/openapi.json)

## Documentation

`, v.Base)
	for _, p := range pageList {
		if p.Name != "agents" {
			fmt.Fprintf(&b, "- [%s](%s)\n", p.Title, strings.TrimRight(v.Base+"/docs/"+p.Name, "/"))
		}
	}
	fmt.Fprintf(&b, "- [Manual](%s/docs/%s)\n", v.Base, overview)
	return page.NewAsset(page.Kind{Type: fiber.MIMETextPlainCharsetUTF8}, []byte(b.String()))
}
