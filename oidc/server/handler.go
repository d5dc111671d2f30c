package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"crier/oidc"
	"crier/platform/fault"
)

const (
	// maxBody is the maximum size of a request body, in bytes.
	maxBody = 64 << 10
	// omitted replaces a redirect_uri that the client did not send, because op requires one. No
	// client can register this URI.
	omitted = "about:omitted"
)

// handler rewrites requests into the form that op expects. Without it, op would reject JSON bodies,
// read parameters from the query, and decode credentials that some clients do not encode.
type handler struct {
	server *server
	next   http.Handler
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Pragma", "no-cache")
	if !slices.Contains([]string{TokenPath, IntrospectPath, RevokePath}, r.URL.Path) {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, oidc.Fail(oidc.InvalidRequest, "Send a POST request."))
		return
	}
	form, refused := readForm(w, r)
	if refused != nil {
		refuse(w, http.StatusBadRequest, refused)
		return
	}
	if r.URL.Path == IntrospectPath && isKey(r) {
		h.introspectFor(w, r, form.Get("token"))
		return
	}
	basic, refused := takeCredentials(r, form)
	out := &challenger{ResponseWriter: w, basic: basic}
	if refused != nil {
		h.fail(out, r, refused)
		return
	}
	c, err := h.authenticate(r, form)
	if err != nil {
		h.fail(out, r, err)
		return
	}
	if err := h.check(r, form); err != nil {
		h.fail(out, r, err)
		return
	}
	h.serve(out, r, form, c)
}

// authenticate returns the client of a request.
func (h *handler) authenticate(r *http.Request, form url.Values) (oidc.Client, error) {
	refuse := func(message string) (oidc.Client, error) {
		return oidc.Client{}, oidc.Fail(oidc.InvalidClient, message)
	}
	switch {
	case form.Get("client_assertion") != "":
		return refuse("Client assertions are not supported.")
	case form.Get("client_id") == "":
		return refuse("client_id is missing.")
	case r.URL.Path == IntrospectPath && form.Get("client_secret") == "":
		return refuse("Authenticate as a client with a secret, or with an API key.")
	}
	return h.server.deps.Clients.Authenticate(r.Context(), form.Get("client_id"), form.Get("client_secret"))
}

// check returns an oidc.Error if a request lacks a parameter or asks for something that the server
// does not support.
func (h *handler) check(r *http.Request, form url.Values) error {
	required := "token"
	if r.URL.Path == TokenPath {
		switch form.Get("grant_type") {
		case "authorization_code":
			required = "code"
		case "refresh_token":
			required = "refresh_token"
		case "":
			required = "grant_type"
		default:
			return oidc.Fail(oidc.UnsupportedGrantType, "grant_type must be authorization_code or refresh_token.")
		}
	}
	if form.Get(required) == "" {
		return oidc.Fail(oidc.InvalidRequest, required+" is missing.")
	}
	_, err := oidc.CheckResource(h.server.deps.BaseURL, form["resource"]...)
	return err
}

// serve passes a request to op and writes the response.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, form url.Values, c oidc.Client) {
	if form.Get("grant_type") == "authorization_code" && form.Get("redirect_uri") == "" {
		form.Set("redirect_uri", omitted)
	}
	made := &call{client: c}
	held := &heldResponse{ResponseWriter: w, status: http.StatusOK}
	h.next.ServeHTTP(held, rewritten(r.WithContext(context.WithValue(r.Context(), callKey{}, made)), form))
	if made.err != nil {
		h.fail(w, r, made.err)
		return
	}
	w.WriteHeader(held.status)
	_, _ = w.Write(held.body.Bytes()) // an error means that the client is gone
}

// heldResponse buffers op's response until the handler knows whether to send it.
type heldResponse struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// WriteHeader implements http.ResponseWriter.
func (h *heldResponse) WriteHeader(status int) { h.status = status }

// Write implements http.ResponseWriter.
func (h *heldResponse) Write(p []byte) (int, error) { return h.body.Write(p) }

// readForm returns the parameters in a request's body, which must be a form or a JSON object. It
// treats a parameter without a value as absent. Only the "resource" parameter may be repeated.
func readForm(w http.ResponseWriter, r *http.Request) (url.Values, *oidc.Error) {
	refuse := func(message string) (url.Values, *oidc.Error) { return nil, oidc.Fail(oidc.InvalidRequest, message) }
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return refuse("The body cannot be read or has more than 64 KiB.")
	}
	var form url.Values
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		if form, err = fromJSON(body); err != nil {
			return refuse("The body must be a JSON object whose values are strings.")
		}
	case "", "application/x-www-form-urlencoded":
		if form, err = url.ParseQuery(string(body)); err != nil {
			return refuse("The body is not a form.")
		}
	default:
		return refuse("The body must be a form or JSON.")
	}
	for name, values := range form {
		values = slices.DeleteFunc(values, func(v string) bool { return v == "" })
		if form[name] = values; len(values) > 1 && name != "resource" {
			return refuse("The parameter " + strconv.Quote(name) + " is repeated.")
		}
	}
	return form, nil
}

func fromJSON(body []byte) (url.Values, error) {
	var object map[string]any
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, err
	}
	form := url.Values{}
	for name, value := range object {
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		for _, one := range list {
			switch text := one.(type) {
			case nil:
			case string:
				form.Add(name, text)
			default:
				return nil, errors.New("a value is not a string")
			}
		}
	}
	return form, nil
}

// isKey reports whether the Authorization header may contain an API key.
func isKey(r *http.Request) bool {
	sent := r.Header.Get("Authorization")
	return sent != "" && !isBasic(sent)
}

func isBasic(authorization string) bool {
	scheme, _, _ := strings.Cut(authorization, " ")
	return strings.EqualFold(scheme, "Basic")
}

// takeCredentials removes the Authorization header. If it is a Basic header, takeCredentials moves
// its credentials into the form, and basic is true.
func takeCredentials(r *http.Request, form url.Values) (basic bool, refused *oidc.Error) {
	authorization := r.Header.Get("Authorization")
	r.Header.Del("Authorization")
	if !isBasic(authorization) {
		return false, nil
	}
	bad := oidc.Fail(oidc.InvalidClient, "The Authorization header is not valid.")
	sent := &http.Request{Header: http.Header{"Authorization": {authorization}}}
	name, password, ok := sent.BasicAuth()
	if !ok {
		return true, bad
	}
	id, secret, ok := splitBasic(name, password, form.Get("client_id"))
	switch {
	case !ok:
		return true, bad
	case form.Get("client_secret") != "":
		return true, oidc.Fail(oidc.InvalidRequest, "Authenticate in the header or in the body, not both.")
	case form.Get("client_id") != "" && form.Get("client_id") != id:
		return true, oidc.Fail(oidc.InvalidRequest, "The client_id differs from the one in the Authorization header.")
	}
	form.Set("client_id", id)
	if secret != "" {
		form.Set("client_secret", secret)
	}
	return true, nil
}

// splitBasic returns the client id and secret from a Basic header. Both should be form-encoded (RFC
// 6749, 2.3.1). If a client does not encode its id and the id is a URL, name ends at the URL's
// first colon, so splitBasic restores the id. known is the client_id in the body, or "".
func splitBasic(name, password, known string) (id, secret string, ok bool) {
	if rest, found := strings.CutPrefix(name+":"+password, known+":"); found && known != "" {
		name, password = url.QueryEscape(known), rest
	} else if found := strings.HasPrefix(password, "//"); name == "https" && found {
		end := strings.LastIndexByte(password, ':')
		if end < 0 {
			return "", "", false
		}
		name, password = url.QueryEscape(name+":"+password[:end]), password[end+1:]
	}
	id, err := url.QueryUnescape(name)
	if err != nil || id == "" {
		return "", "", false
	}
	secret, err = url.QueryUnescape(password)
	return id, secret, err == nil
}

// rewritten returns a copy of the request with a form as its body and without a query.
func rewritten(r *http.Request, form url.Values) *http.Request {
	out := r.Clone(r.Context())
	body := form.Encode()
	out.Body, out.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	out.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	out.Header.Set("Content-Length", strconv.Itoa(len(body)))
	out.URL.RawQuery, out.Form, out.PostForm = "", nil, nil
	return out
}

// introspectFor responds to an introspection request that is authenticated with an API key.
func (h *handler) introspectFor(w http.ResponseWriter, r *http.Request, token string) {
	key := r.Header.Get("Authorization")
	if scheme, rest, found := strings.Cut(key, " "); found && strings.EqualFold(scheme, "Bearer") {
		key = rest
	}
	p, err := h.server.deps.Keys.Authenticate(r.Context(), key)
	if fault.Is(err, fault.Unauthenticated) || fault.Is(err, fault.Forbidden) {
		refuse(w, http.StatusUnauthorized, oidc.Fail(oidc.InvalidClient, "Invalid API key."))
		return
	}
	if token == "" && err == nil {
		refuse(w, http.StatusBadRequest, oidc.Fail(oidc.InvalidRequest, "token is missing."))
		return
	}
	var found oidc.Introspection
	if err == nil {
		found, err = h.server.deps.Grants.IntrospectFor(r.Context(), p, token)
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, h.server.introspection(found))
}

// challenger adds a WWW-Authenticate header to a 401 response if the client used a Basic header.
type challenger struct {
	http.ResponseWriter
	basic bool
}

// WriteHeader implements http.ResponseWriter.
func (c *challenger) WriteHeader(status int) {
	if c.basic && status == http.StatusUnauthorized {
		c.Header().Set("WWW-Authenticate", `Basic realm="oauth", charset="UTF-8"`)
	}
	c.ResponseWriter.WriteHeader(status)
}
