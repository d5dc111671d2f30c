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

// sampleFiles contains a template for each language, samples/<id>.tmpl. For webhooks, it also
// contains code that verifies deliveries, verify/verify.<extension>, and servers that receive them,
// verify/receiver.<extension>.
//
//go:embed samples/*.tmpl verify/*
var sampleFiles embed.FS

// language is a language in which samples are shown.
type language struct {
	ID, Name string
	// extension is the file name extension of the webhook files, or "" if the language has no such
	// files.
	extension string
}

var languages = []language{
	{ID: "curl", Name: "curl"},
	{ID: "typescript", Name: "TypeScript", extension: "ts"},
	{ID: "python", Name: "Python", extension: "py"},
	{ID: "go", Name: "Go", extension: "go.txt"},
	{ID: "php", Name: "PHP", extension: "php"},
}

// sample is code in one language. Operation is the id of the operation that the code calls.
type sample struct {
	Language  language
	Operation string
	Code      string
}

// call is one request. It is the data for a language's template.
type call struct {
	Method, URL string
	Headers     []header
	// Body is JSON, or "" for a request without a body.
	Body string
	// File is set if the request uploads a file, in the form field named file.
	File bool
	// Key is set if the request has an Idempotency-Key, which the sample generates.
	Key bool
	// Variables lists the environment variables that are used in the URL or in strings in the body.
	// No variable's name contains another's.
	Variables []string
}

// InURL reports whether the URL contains a variable.
func (c call) InURL() bool { return c.in(c.URL) }

// InBody reports whether the body contains a variable.
func (c call) InBody() bool { return c.in(c.Body) }

func (c call) in(text string) bool {
	return slices.ContainsFunc(c.Variables, func(name string) bool { return strings.Contains(text, name) })
}

// Insert returns text with before and after inserted around each variable.
func (c call) Insert(text, before, after string) string {
	for _, name := range c.Variables {
		text = strings.ReplaceAll(text, name, before+name+after)
	}
	return text
}

// Replace returns text in which each quoted variable, including its quotes, has been replaced with
// before, the variable and after.
func (c call) Replace(text, before, after string) string {
	for _, name := range c.Variables {
		text = strings.ReplaceAll(text, `"`+name+`"`, before+name+after)
	}
	return text
}

type header struct{ Name, Value string }

// samplesOf returns one sample for each language. Each sample makes the operation's example call.
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

// Get reports whether the method is GET, which HTTP clients use by default.
func (c call) Get() bool { return c.Method == http.MethodGet }

var jsonToken = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|true|false|null`)

// python returns JSON as a Python expression.
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

// shell escapes text for use within single quotes in a shell.
func shell(text string) string { return strings.ReplaceAll(text, "'", `'\''`) }

// indented returns text with a prefix before every line except the first.
func indented(prefix, text string) string { return strings.ReplaceAll(text, "\n", "\n"+prefix) }

// forReceivers returns the webhook code in verify/<name>.<extension> for each language that has
// such files.
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
