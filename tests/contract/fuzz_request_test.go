package contract

import (
	"bytes"
	"encoding/json"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"crier/tests/fixture"
)

// made is a request that was generated from the document.
type made struct {
	Method, Path string
	Body         []byte
	Header       map[string]string
	// As is the caller: "key", "session" or "visitor".
	As string
}

// request returns a generator of requests to one route.
func (m maker) request(op *operation) *rapid.Generator[made] {
	return rapid.Custom(func(t *rapid.T) made {
		m := m
		m.clean = rapid.Bool().Draw(t, "clean")
		out := made{Method: op.method, Path: op.path, Header: map[string]string{}, As: m.caller(t, op)}
		query := url.Values{}
		for _, p := range op.Parameters {
			switch p.In {
			case "path":
				v := m.scalar(t, p.Schema, kindOf(op.path))
				out.Path = strings.ReplaceAll(out.Path, "{"+p.Name+"}", url.PathEscape(v))
			case "query":
				if p.Required && !m.wrong(t, 20) || rapid.Bool().Draw(t, "optional") {
					query.Add(p.Name, m.scalar(t, p.Schema, p.Name))
				}
			case "header":
				if v := m.scalar(t, p.Schema, ""); rapid.Bool().Draw(t, "optional") && printable(v) {
					out.Header[p.Name] = v
				}
			}
		}
		if len(query) > 0 {
			out.Path += "?" + query.Encode()
		}
		m.addBody(t, op, &out)
		return out
	})
}

func printable(v string) bool {
	return !strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' })
}

// caller returns the caller of a route, usually one that is allowed to call it.
func (m maker) caller(t *rapid.T, op *operation) string {
	if m.wrong(t, 12) || len(op.Security) == 0 {
		return rapid.SampledFrom([]string{"key", "session", "visitor"}).Draw(t, "caller")
	}
	for _, way := range op.Security {
		if _, ok := way["key"]; ok {
			return "key"
		}
	}
	return "session"
}

// addBody adds a body that usually has the content type and the schema of the route.
func (m maker) addBody(t *rapid.T, op *operation, out *made) {
	if out.Method == http.MethodGet {
		return
	}
	content := op.Body.Content
	if form, ok := content["multipart/form-data"]; ok && form.Schema != nil {
		out.Body, out.Header["Content-Type"] = m.upload(t)
		return
	}
	out.Header["Content-Type"] = "application/json"
	if m.wrong(t, 20) {
		out.Header["Content-Type"] = rapid.SampledFrom([]string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x"}).Draw(t, "content type")
	}
	if m.wrong(t, 20) {
		out.Body = []byte(rapid.SampledFrom([]string{"", "{", "null", "[]", `"x"`, "{}{}", "\xff", `{"a":"\ud800"}`, "a=b&c=d"}).Draw(t, "body"))
		return
	}
	body := m.value(t, content["application/json"].Schema, kindOf(op.path), 0)
	if strings.HasSuffix(op.path, "/posts") && rapid.Bool().Draw(t, "specimen") {
		body = postBody(t, m)
	}
	var err error
	out.Body, err = json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
}

// postBody returns a body that creates posts, unless one of its values was replaced. Bodies
// generated from the schema alone are almost never accepted, because their values must fit
// together.
func postBody(t *rapid.T, r maker) any {
	entries := []m{entry(r.channelID, part("first"), part("second", m{"path": rapid.SampledFrom(append(slices.Clip(r.seen["upload"]), "x")).Draw(t, "file")}))}
	if r.clean || rapid.Bool().Draw(t, "short") {
		entries = []m{entry(r.channelID, part(rapid.StringN(1, 40, 400).Draw(t, "content")))}
	}
	body := request(rapid.SampledFrom([]string{"draft", "schedule", "now"}).Draw(t, "type"), tomorrow(), entries...)
	if !r.clean {
		in := rapid.SampledFrom([]m{body, entries[0], entries[0]["value"].([]m)[0]}).Draw(t, "object")
		in[rapid.SampledFrom(slices.Sorted(maps.Keys(in))).Draw(t, "member")] = r.anything(t)
	}
	return body
}

// upload returns a multipart body with a picture, whole or cut off, and its content type.
func (m maker) upload(t *rapid.T) (body []byte, contentType string) {
	var buffer bytes.Buffer
	w := multipart.NewWriter(&buffer)
	file, err := w.CreateFormFile(rapid.SampledFrom([]string{"file", "file", "file", "other", ""}).Draw(t, "field"), "name.jpg")
	if err == nil {
		data := fixture.BlankJPEG(rapid.IntRange(1, 64).Draw(t, "width"), rapid.IntRange(1, 64).Draw(t, "height"), false, 0x11, "\x01\x02\x03")
		if m.wrong(t, 3) {
			data = data[:rapid.IntRange(0, len(data)).Draw(t, "cut")]
		}
		_, err = file.Write(data)
	}
	if err == nil && !m.wrong(t, 10) {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes(), w.FormDataContentType()
}

// kindOf returns the first part of a path after the prefix of the public API, without a plural s.
func kindOf(path string) string {
	parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(path, "/api"), "/public/v1"), "/")
	return strings.TrimSuffix(parts[1], "s")
}

// learn adds the strings in a response that are ids or look like tokens.
func (m maker) learn(kind string, raw []byte) {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return
	}
	var walk func(name string, v any)
	walk = func(name string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				walk(name, member)
			}
		case []any:
			for _, member := range v[:min(len(v), 3)] {
				walk(name, member)
			}
		case string:
			telling := strings.HasSuffix(strings.ToLower(name), "id") || slices.Contains([]string{"group", "state", "token", "path", "provider"}, name)
			if telling && v != "" && len(v) < 300 && !slices.Contains(m.seen[kind], v) {
				kept := m.seen[kind]
				m.seen[kind] = append(kept[max(0, len(kept)-20):], v)
			}
		}
	}
	walk("", v)
}
