package docs

import (
	"bytes"
	"fmt"
	"html/template"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"crier/docs"
)

// chapter is a chapter of the manual, with its pages in navigation order.
type chapter struct {
	Title string
	Pages []manualPage
}

// manualPage is a page of the manual.
type manualPage struct {
	// Name is the page's path below /docs. Example: self-hosting/install.
	Name string
	// Title is the page's first heading.
	Title string
}

// overview is the name of the manual's first page.
const overview = "using"

// manual returns the chapters in navigation order. Their pages have no titles; see titledManual.
func manual() []chapter {
	return []chapter{
		{Title: "Using", Pages: []manualPage{{Name: overview}}},
		{Title: "Self-hosting", Pages: manualPages("self-hosting", "install", "configuration", "network", "database",
			"files", "accounts", "plans", "publishing", "limits-and-disk", "processes", "runbook")},
		{Title: "Developing", Pages: manualPages("developing", "architecture", "glossary", "tests", "dev")},
	}
}

// manualPages returns the pages of a folder.
func manualPages(folder string, names ...string) (pages []manualPage) {
	for _, name := range names {
		pages = append(pages, manualPage{Name: path.Join(folder, name)})
	}
	return pages
}

// titledManual returns the chapters with the titles of their pages.
func titledManual() ([]chapter, error) {
	chapters := manual()
	for _, c := range chapters {
		for i, p := range c.Pages {
			source, err := docs.Pages.ReadFile(p.file())
			if err != nil {
				return nil, err
			}
			heading, _, _ := strings.Cut(string(source), "\n")
			title, ok := strings.CutPrefix(heading, "# ")
			if !ok {
				return nil, fmt.Errorf("docs/%s does not begin with a heading", p.file())
			}
			c.Pages[i].Title = title
		}
	}
	return chapters, nil
}

// addManual adds the pages of the manual.
func (s *Site) addManual(r *renderer) error {
	chapters, err := titledManual()
	if err != nil {
		return err
	}
	for _, c := range chapters {
		for _, p := range c.Pages {
			v := r.view
			v.Page, v.Manual = sitePage{Name: p.Name, Title: p.Title}, chapters
			if v.Document, err = p.render(v.Root, chapters); err != nil {
				return err
			}
			if s.pages[p.Name], err = r.pages.Named("manual.html").Asset(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// file returns the page's path below the folder docs.
func (p manualPage) file() string {
	if p.Name == overview {
		return path.Join(overview, "README.md")
	}
	return p.Name + ".md"
}

// render returns the page as HTML. root is the path of the service.
func (p manualPage) render(root string, chapters []chapter) (template.HTML, error) {
	source, err := docs.Pages.ReadFile(p.file())
	if err != nil {
		return "", err
	}
	links := linker{file: p.file(), addresses: map[string]string{}}
	for _, c := range chapters {
		for _, other := range c.Pages {
			links.addresses[other.file()] = root + "/docs/" + other.Name
		}
	}
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(
		parser.WithAutoHeadingID(), parser.WithASTTransformers(util.Prioritized(links, 0))))
	var out bytes.Buffer
	if err := markdown.Convert(source, &out); err != nil {
		return "", fmt.Errorf("render docs/%s: %w", p.file(), err)
	}
	return template.HTML(scrollable.Replace(out.String())), nil
}

// scrollable lets the keyboard scroll tables and code that are wider than the window. A page's text
// cannot contain these tags, because goldmark escapes HTML in code and omits it elsewhere.
var scrollable = strings.NewReplacer(
	"<table>", `<div class="wide" tabindex="0"><table>`, "</table>", "</table></div>", "<pre>", `<pre tabindex="0">`)

// linker replaces the relative links in a page with URLs on this service. If a link points to a
// file that the service does not serve, linker replaces the link with its text and the file's path
// in the source code.
type linker struct {
	file string
	// addresses maps each page's path below the folder docs to the page's URL.
	addresses map[string]string
}

// Transform implements parser.ASTTransformer.
func (l linker) Transform(page *ast.Document, source text.Reader, _ parser.Context) {
	var links []*ast.Link
	// The function never returns an error, so Walk does not either.
	_ = ast.Walk(page, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if link, ok := n.(*ast.Link); ok && entering {
			links = append(links, link)
		}
		return ast.WalkContinue, nil
	})
	for _, link := range links {
		file, anchor, hasAnchor := strings.Cut(string(link.Destination), "#")
		if file == "" || strings.Contains(file, ":") {
			continue
		}
		file = path.Join(path.Dir(l.file), file)
		address, ok := l.addresses[file]
		if !ok {
			replaceByText(link, path.Join("docs", file), source.Source())
			continue
		}
		if hasAnchor {
			address += "#" + anchor
		}
		link.Destination = []byte(address)
	}
}

// replaceByText replaces a link with its text, followed by the file's path unless the text is the
// path.
func replaceByText(link *ast.Link, file string, source []byte) {
	parent := link.Parent()
	note := " (" + file + " in the source code)"
	if t, ok := link.FirstChild().(*ast.Text); ok && string(t.Value(source)) == file {
		note = " (in the source code)"
	}
	for child := link.FirstChild(); child != nil; child = link.FirstChild() {
		parent.InsertBefore(parent, link, child)
	}
	parent.InsertBefore(parent, link, ast.NewString([]byte(note)))
	parent.RemoveChild(parent, link)
}
