package github

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const maxBody = 64 << 10

var errBody = errors.New("the body is not a set of parameters")

// readParams reads the parameters of the token endpoint. "Authorizing OAuth apps" only mentions
// input parameters, so a form and a JSON object of strings are accepted. The query of the URL is
// not read. It is an assumption that other media types and forms with repeated parameters are
// refused.
func readParams(w http.ResponseWriter, r *http.Request) (map[string]string, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, err
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	switch kind {
	case "application/x-www-form-urlencoded":
		if params, ok := single(string(body)); ok {
			return params, nil
		}
	case "application/json":
		var params map[string]string
		return params, json.Unmarshal(body, &params)
	}
	return nil, errBody
}

// tokenAnswer is a response of the token endpoint.
type tokenAnswer struct {
	status     int
	fields     map[string]string
	retryAfter string
}

// format is an encoding of the token endpoint's responses.
type format string

const (
	formatForm format = "application/x-www-form-urlencoded"
	formatJSON format = "application/json"
	formatXML  format = "application/xml"
)

// acceptedFormat returns the first known media type in the Accept headers, or the form.
// "Authorizing OAuth apps": the form is the default, and application/json or application/xml in
// Accept select the others.
func acceptedFormat(r *http.Request) format {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		kind, _, err := mime.ParseMediaType(part)
		if f := format(kind); err == nil && (f == formatJSON || f == formatXML || f == formatForm) {
			return f
		}
	}
	return formatForm
}

// sendToken encodes a response. RFC 6749, section 5.1: it must not be cached.
func sendToken(w http.ResponseWriter, r *http.Request, a tokenAnswer) {
	f := acceptedFormat(r)
	body, err := f.encode(a.fields)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", string(f)+"; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if a.retryAfter != "" {
		w.Header().Set("Retry-After", a.retryAfter)
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(body) // the client may have disconnected
}

func (f format) encode(fields map[string]string) ([]byte, error) {
	switch f {
	case formatJSON:
		return json.Marshal(fields)
	case formatXML:
		return xml.Marshal(xmlFields(fields))
	}
	values := url.Values{}
	for name, value := range fields {
		values.Set(name, value)
	}
	return []byte(values.Encode()), nil
}

// xmlFields is encoded as <OAuth> with one element per field. The documentation shows the elements
// in reverse alphabetical order.
type xmlFields map[string]string

// MarshalXML implements xml.Marshaler.
func (x xmlFields) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	start.Name.Local = "OAuth"
	if err := e.EncodeToken(start); err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(x))
	for _, name := range slices.Backward(names) {
		if err := e.EncodeElement(x[name], xml.StartElement{Name: xml.Name{Local: name}}); err != nil {
			return err
		}
	}
	return e.EncodeToken(start.End())
}
