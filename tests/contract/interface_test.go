package contract

import (
	"bytes"
	"fmt"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
)

// inputs holds the inputs of one request by name. The prefix of a name says where the input
// belongs: "path ", "query ", "header ", "file " for a part of a form, and no prefix for a member
// of the JSON body.
type inputs map[string]any

// rowInput is one input of a route.
type rowInput struct {
	name string
	// absent is the status of a request without the input. 0 means that the input is optional and
	// the request succeeds.
	absent int
	wrong  []malformed
}

// malformed is a value of an input and the status with which it is refused. 0 means that the value
// is accepted, as in the contract.
type malformed struct {
	value  any
	status int
}

// row says how the tests call a route in the interface's table of the public API.
type row struct {
	// good returns all inputs with valid values, for a new call.
	good func(t *testing.T, o org) inputs
	// status is the status of a success.
	status int
	inputs []rowInput
	shape  func(t *testing.T, a answer)
}

// request sends the inputs to a route.
func (in inputs) request(t *testing.T, o org, method, path string) answer {
	t.Helper()
	query, body, headers := url.Values{}, m{}, []string{}
	var form bytes.Buffer
	files := multipart.NewWriter(&form)
	hasFile := false
	for name, v := range in {
		where, rest, ok := strings.Cut(name, " ")
		switch {
		case !ok:
			body[name] = v
		case where == "path":
			path = strings.Replace(path, ":"+rest, url.PathEscape(fmt.Sprint(v)), 1)
		case where == "query":
			query.Set(rest, fmt.Sprint(v))
		case where == "header":
			headers = append(headers, rest, fmt.Sprint(v))
		case where == "file":
			hasFile = true
			w, err := files.CreateFormFile(rest, "picture.png")
			if err == nil {
				_, err = w.Write(v.([]byte))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	switch {
	case path == "/upload":
		if !hasFile {
			form.Reset()
		}
		return o.do(t, method, path, form.Bytes(), append(headers, "Content-Type", files.FormDataContentType())...)
	case method == http.MethodPost || method == http.MethodPut:
		return o.do(t, method, path, body, headers...)
	}
	return o.do(t, method, path, nil, headers...)
}

func (in inputs) with(name string, v any) inputs {
	out := inputs{name: v}
	for name, v := range in {
		if _, ok := out[name]; !ok {
			out[name] = v
		}
	}
	return out
}

func (in inputs) without(name string) inputs {
	out := maps.Clone(in)
	delete(out, name)
	return out
}

var tableRow = regexp.MustCompile(`(?m)^\| (GET|POST|PUT|DELETE) \| (/[^ ]*) \| (.*) \| (.*) \|$`)

// publicTable returns the rows in the interface's table of the public API, as "METHOD /path".
func publicTable(t *testing.T) (rows []string) {
	t.Helper()
	raw, err := os.ReadFile("../../apps/edge/openapi/interface.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(raw), "### Public API")
	text, _, end := strings.Cut(text, "\n### ")
	if !ok || !end {
		t.Fatal("the interface has no section Public API")
	}
	for _, r := range tableRow.FindAllStringSubmatch(text, -1) {
		rows = append(rows, r[1]+" "+r[2])
	}
	return rows
}

// TestInterface calls each route in the interface's table of the public API with each of its inputs
// present, absent and malformed.
func TestInterface(t *testing.T) {
	t.Parallel()
	r := startOAuth(t)
	rows := interfaceRows()
	table := publicTable(t)
	if len(table) != len(rows) {
		t.Errorf("the table has %d rows, want the %d that the test knows", len(table), len(rows))
	}
	for _, name := range table {
		c, known := rows[name]
		if !known {
			t.Errorf("%s is in the table and not in the test", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := r.organization(t)
			method, path, _ := strings.Cut(name, " ")
			c.test(t, o, method, path)
		})
	}
}

func (c row) test(t *testing.T, o org, method, path string) {
	t.Helper()
	status := func(what string, in inputs, want int) answer {
		t.Helper()
		a := in.request(t, o, method, path)
		switch {
		case a.Status != want:
			t.Errorf("%s: the answer is %v, want the status %d", what, a, want)
		case want >= 400:
			a.refusal(t, want)
		}
		return a
	}
	c.shape(t, status("all inputs", c.good(t, o), c.status))
	visitor := o
	visitor.key = ""
	c.good(t, o).request(t, visitor, method, path).refusal(t, http.StatusUnauthorized)
	for _, in := range c.inputs {
		expected := func(status int) int {
			if status == 0 {
				return c.status
			}
			return status
		}
		if !strings.HasPrefix(in.name, "path ") {
			status("without "+in.name, c.good(t, o).without(in.name), expected(in.absent))
		}
		for _, wrong := range in.wrong {
			status(fmt.Sprintf("%s is %v", in.name, wrong.value), c.good(t, o).with(in.name, wrong.value), expected(wrong.status))
		}
	}
}
