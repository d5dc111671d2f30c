package edge

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // the page and its style
	"encoding/base64"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/route"
	"crier/platform/fault"
)

//go:generate go test . -run TestOpenAPI -update

var (
	//go:embed docs.html
	docsSource string
	//go:embed docs.css
	docsStyle string
)

// docsPage is the OpenAPI document as a web page, with its content policy.
type docsPage struct {
	html   []byte
	policy string
}

type docsView struct {
	Title, Text string
	Style       template.CSS
	Groups      []docsGroup
	Missing     []Route
}

type docsGroup struct {
	Name       string
	Anchor     string
	Operations []docsOperation
}

type docsOperation struct {
	*huma.Operation
	Anchor  string
	Body    []docsLine
	Answers []docsAnswer
}

type docsAnswer struct {
	Status, Text string
	Lines        []docsLine
}

type docsLine struct {
	Name, Type, Text string
	Required         bool
	Depth            int
}

// newPage renders the document and the list of routes that are not built. The policy of the page allows its own style
// by hash, and no scripts. The errors are Internal.
func newPage(doc *huma.OpenAPI, missing []Route) (*docsPage, error) {
	t, err := template.New("docs").Parse(docsSource)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "edge.newPage", "", err)
	}
	sum := sha256.Sum256([]byte(docsStyle))
	var b bytes.Buffer
	view := docsView{
		Title: doc.Info.Title + " API " + doc.Info.Version, Text: doc.Info.Description, Style: template.CSS(docsStyle),
		Groups: docsGroups(doc), Missing: missing,
	}
	if err := t.Execute(&b, view); err != nil {
		return nil, fault.Wrap(fault.Internal, "edge.newPage", "", err)
	}
	style := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	policy := "default-src 'none'; style-src " + style + "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return &docsPage{html: b.Bytes(), policy: policy}, nil
}

// docsGroups returns the operations of the document by their first tag, sorted.
func docsGroups(doc *huma.OpenAPI) []docsGroup {
	by := map[string][]docsOperation{}
	for _, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Delete} {
			if op != nil {
				by[op.Tags[0]] = append(by[op.Tags[0]], docsOf(doc, op))
			}
		}
	}
	out := make([]docsGroup, 0, len(by))
	for name, ops := range by {
		slices.SortFunc(ops, func(a, b docsOperation) int {
			return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Method, b.Method))
		})
		anchor := strings.ReplaceAll(strings.ToLower(name), " ", "-")
		out = append(out, docsGroup{Name: name, Anchor: anchor, Operations: ops})
	}
	slices.SortFunc(out, func(a, b docsGroup) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func docsOf(doc *huma.OpenAPI, op *huma.Operation) docsOperation {
	out := docsOperation{Operation: op, Anchor: op.OperationID}
	if op.RequestBody != nil {
		out.Body = contentLines(doc, op.RequestBody.Content)
	}
	for status, r := range op.Responses {
		answer := docsAnswer{Status: status, Text: r.Description}
		if status < "400" {
			answer.Lines = contentLines(doc, r.Content)
		}
		out.Answers = append(out.Answers, answer)
	}
	slices.SortFunc(out.Answers, func(a, b docsAnswer) int { return strings.Compare(a.Status, b.Status) })
	return out
}

func contentLines(doc *huma.OpenAPI, content map[string]*huma.MediaType) (out []docsLine) {
	for _, m := range content {
		if m.Schema != nil {
			out = schemaLines(doc, m.Schema, 0)
		}
	}
	return out
}

// maxDepth is how deep the members of a schema are shown. Deeper ones are only named by their type.
const maxDepth = 6

// schemaLines returns the members of an object, or of the elements of an array, each followed by its own members.
func schemaLines(doc *huma.OpenAPI, s *huma.Schema, depth int) (out []docsLine) {
	s = resolve(doc, s)
	if s.Type == huma.TypeArray && s.Items != nil {
		return schemaLines(doc, s.Items, depth)
	}
	if depth > maxDepth {
		return nil
	}
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		member := s.Properties[name]
		full := resolve(doc, member)
		text := cmp.Or(member.Description, full.Description)
		out = append(out, docsLine{
			Name: name, Type: typeName(doc, member), Text: text,
			Required: slices.Contains(s.Required, name), Depth: depth,
		})
		out = append(out, schemaLines(doc, member, depth+1)...)
	}
	return out
}

func resolve(doc *huma.OpenAPI, s *huma.Schema) *huma.Schema {
	if s.Ref == "" {
		return s
	}
	return doc.Components.Schemas.SchemaFromRef(s.Ref)
}

func typeName(doc *huma.OpenAPI, s *huma.Schema) string {
	s = resolve(doc, s)
	switch {
	case s.Type == huma.TypeArray && s.Items != nil:
		return "array of " + typeName(doc, s.Items)
	case len(s.OneOf) > 0:
		names := make([]string, len(s.OneOf))
		for i, one := range s.OneOf {
			names[i] = typeName(doc, one)
		}
		return strings.Join(names, " or ")
	case s.Format != "":
		return s.Type + " (" + s.Format + ")"
	default:
		return s.Type
	}
}

const documentPath = "/openapi.json"

// getDocument returns the endpoint of the OpenAPI document, which pages of all origins may read.
func (s *Server) getDocument() route.Endpoint {
	d := huma.Operation{Summary: "Get this document", Tags: []string{"Service"}}
	return route.Raw(d, func(c *fiber.Ctx) error {
		all, err := s.pages()
		if err != nil {
			return err
		}
		c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
		c.Set(fiber.HeaderAccessControlAllowOrigin, "*")
		return c.Send(all.document)
	}, route.Content(http.StatusOK, "The document.", fiber.MIMEApplicationJSON, &huma.Schema{Type: huma.TypeObject}))
}

func (s *Server) getDocs() route.Endpoint {
	d := huma.Operation{Summary: "Get this document as a web page", Tags: []string{"Service"}}
	return route.Raw(d, func(c *fiber.Ctx) error {
		all, err := s.pages()
		if err != nil {
			return err
		}
		c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
		c.Set(fiber.HeaderContentSecurityPolicy, all.page.policy)
		return c.Send(all.page.html)
	}, route.Content(http.StatusOK, "The page.", fiber.MIMETextHTML, &huma.Schema{Type: huma.TypeString}))
}
