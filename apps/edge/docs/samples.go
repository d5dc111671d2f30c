package docs

import (
	"embed"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/gofiber/fiber/v2"
)

// sampleFiles has one template for each language, samples/<id>.tmpl, the code that verifies webhooks,
// verify/verify.<extension>, and servers that receive them, verify/receiver.<extension>.
//
//go:embed samples/*.tmpl verify/*
var sampleFiles embed.FS

// language is a language of samples.
type language struct {
	ID, Name string
	// extension is that of the files for receivers of webhooks, empty if the language has none.
	extension string
}

var languages = []language{
	{ID: "curl", Name: "curl"},
	{ID: "typescript", Name: "TypeScript", extension: "ts"},
	{ID: "python", Name: "Python", extension: "py"},
	{ID: "go", Name: "Go", extension: "go.txt"},
	{ID: "php", Name: "PHP", extension: "php"},
}

// sample is code in one language. Operation is the id of the operation that it calls.
type sample struct {
	Language  language
	Operation string
	Code      string
}

// call is what the template of a language gets: one request.
type call struct {
	Method, URL string
	Headers     []header
	// Body is JSON, empty for a request without a body.
	Body string
	// File is whether a file is uploaded, in the field file of a form.
	File bool
	// Key is whether the request has an Idempotency-Key, which the sample makes.
	Key bool
	// Variables are the names of variables of the environment that are used in the URL or in strings of the body. None is a
	// part of another one.
	Variables []string
}

// InURL returns whether the URL has a variable.
func (c call) InURL() bool { return c.in(c.URL) }

// InBody returns whether the body has a variable.
func (c call) InBody() bool { return c.in(c.Body) }

func (c call) in(text string) bool {
	return slices.ContainsFunc(c.Variables, func(name string) bool { return strings.Contains(text, name) })
}

// Insert returns text with before and after around each variable.
func (c call) Insert(text, before, after string) string {
	for _, name := range c.Variables {
		text = strings.ReplaceAll(text, name, before+name+after)
	}
	return text
}

// Replace returns text with before and after around each variable in place of its quotes.
func (c call) Replace(text, before, after string) string {
	for _, name := range c.Variables {
		text = strings.ReplaceAll(text, `"`+name+`"`, before+name+after)
	}
	return text
}

type header struct{ Name, Value string }

// samplesOf returns samples of an operation in each language, which make the call of its example.
func samplesOf(o operation, base string) ([]sample, error) {
	return samplesOfCall(o.OperationID, callOf(o, base))
}

func samplesOfCall(operation string, c call) (out []sample, err error) {
	files, err := template.New("").Funcs(template.FuncMap{"python": python, "shell": shell, "indented": indented}).
		ParseFS(sampleFiles, "samples/*.tmpl")
	if err != nil {
		return nil, err
	}
	for _, l := range languages {
		var b strings.Builder
		if err := files.ExecuteTemplate(&b, l.ID+".tmpl", c); err != nil {
			return nil, err
		}
		out = append(out, sample{Language: l, Operation: operation, Code: strings.TrimSpace(b.String())})
	}
	return out, nil
}

func callOf(o operation, base string) call {
	c := call{Method: o.Method, Body: o.BodyExample}
	path, query := o.Path, url.Values{}
	for _, p := range o.Parameters {
		switch {
		case p.Example == "":
		case p.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(p.Example))
		case p.In == "query":
			query.Set(p.Name, p.Example)
		case p.Name == "Idempotency-Key":
			c.Key = true
		case p.In == "header":
			c.Headers = append(c.Headers, header{Name: p.Name, Value: p.Example})
		}
	}
	c.URL = base + path
	if len(query) > 0 {
		c.URL += "?" + query.Encode()
	}
	if o.RequestBody != nil {
		c.File = o.RequestBody.Content[fiber.MIMEMultipartForm] != nil
	}
	if c.Body != "" {
		c.Headers = append(c.Headers, header{Name: fiber.HeaderContentType, Value: fiber.MIMEApplicationJSON})
	}
	return c
}

// Get returns whether the method is GET, the default of the clients.
func (c call) Get() bool { return c.Method == http.MethodGet }

var jsonToken = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|true|false|null`)

// python returns JSON as an expression of Python.
func python(json string) string {
	return jsonToken.ReplaceAllStringFunc(json, func(token string) string {
		switch token {
		case "true":
			return "True"
		case "false":
			return "False"
		case "null":
			return "None"
		}
		return token
	})
}

// shell returns text within single quotes of a shell.
func shell(text string) string { return strings.ReplaceAll(text, "'", `'\''`) }

// indented returns text with a prefix before each line but the first.
func indented(prefix, text string) string { return strings.ReplaceAll(text, "\n", "\n"+prefix) }

// forReceivers returns the code of the files verify/<name>.<extension> in each language that has one.
func forReceivers(name string) (out []sample, err error) {
	for _, l := range languages {
		if l.extension == "" {
			continue
		}
		code, err := sampleFiles.ReadFile("verify/" + name + "." + l.extension)
		if err != nil {
			return nil, err
		}
		out = append(out, sample{Language: l, Operation: name, Code: strings.TrimSpace(string(code))})
	}
	return out, nil
}
