package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"crier/apps/edge/route"
	"crier/platform/fault"
)

// These are JSON-RPC error codes. codeRefused stands for errors that the HTTP status describes.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInternal       = -32603
	codeRefused        = -32000
)

// statelessVersion is the first protocol version without a handshake. From this version on, clients
// expect 404 for an unknown method.
const statelessVersion = "2026-07-28"

// methods lists the methods that the server supports. Other methods require capabilities that the
// server does not have.
var methods = []string{"initialize", "ping", "server/discover", "tools/list", "tools/call"}

// maxID is the maximum length of a message's id, in bytes. It is limited because responses repeat
// the id.
const maxID = 256

// message is a JSON-RPC message from a client.
type message struct {
	// id is nil for a notification or a response.
	id     json.RawMessage
	method string
	// tool is the name of the tool to call.
	tool string
}

// refusal is an error with the HTTP status and the JSON-RPC code for the response.
type refusal struct {
	status, code int
	// id is the id of the message, or nil if it is unknown.
	id json.RawMessage
	// challenge is the WWW-Authenticate header, or "".
	challenge string
	err       error
}

func (r *refusal) Error() string { return r.err.Error() }

func (r *refusal) Unwrap() error { return r.err }

func invalidMessage(code int, text string) error {
	return &refusal{
		status: http.StatusBadRequest, code: code, err: fault.New(fault.Invalid, "mcp.readMessage", text),
	}
}

// readMessage reads what is needed to decide whether to pass a message to the SDK. It returns a
// refusal if the body is not exactly one message, or if a member is not what JSON-RPC allows. An
// array is rejected, because it could hold thousands of calls that would count as one request.
func readMessage(body []byte) (m message, err error) {
	trimmed := strings.TrimSpace(string(body[:min(len(body), 64)]))
	if strings.HasPrefix(trimmed, "[") {
		return m, invalidMessage(codeInvalidRequest, "Send one message per request, not an array of messages.")
	}
	root := gjson.ParseBytes(body)
	if !utf8.Valid(body) || !gjson.ValidBytes(body) || !root.IsObject() {
		return m, invalidMessage(codeParse, "The body must be a JSON-RPC message: a JSON object in UTF-8.")
	}
	members := membersOf(root, "id", "jsonrpc", "method", "params")
	id, version, method, params := members[0], members[1], members[2], members[3]
	m.method = method.String()
	rule := ""
	switch {
	case !isID(id):
		rule = fmt.Sprintf("id must be a string of at most %d bytes, or a whole number from -%d to %d.", maxID, maxWhole, maxWhole)
	case version.String() != "2.0" || version.Type != gjson.String:
		rule = `jsonrpc must be "2.0".`
	case method.Exists() && method.Type != gjson.String:
		rule = "method must be a string."
	case params.Exists() && params.Type != gjson.Null && !params.IsObject():
		rule = "params must be an object."
	case m.method == "tools/call":
		tool := membersOf(params, "name")[0]
		if m.tool = tool.String(); tool.Exists() && tool.Type != gjson.String {
			rule = "params.name must be a string: the name of a tool."
		}
	}
	if rule != "" {
		return message{}, invalidMessage(codeInvalidRequest, rule)
	}
	if id.Type != gjson.Null {
		m.id = json.RawMessage(id.Raw)
	}
	return m, nil
}

// membersOf returns the members of an object with the given names. Of members with the same name,
// it returns the last, as the SDK does.
func membersOf(object gjson.Result, names ...string) []gjson.Result {
	out := make([]gjson.Result, len(names))
	object.ForEach(func(key, value gjson.Result) bool {
		if i := slices.Index(names, key.Str); i >= 0 {
			out[i] = value
		}
		return true
	})
	return out
}

// maxWhole is the largest whole number that all JSON libraries represent exactly.
const maxWhole = 1<<53 - 1

// isID reports whether a value can be the id of a message: absent, null, a string, or a whole
// number that a response can repeat exactly.
func isID(id gjson.Result) bool {
	switch id.Type {
	case gjson.Null, gjson.String:
		return len(id.Raw) <= maxID
	case gjson.Number:
		n, ok := route.ParseWhole(id.Raw)
		return ok && n >= -maxWhole && n <= maxWhole
	}
	return false
}

// checkMethod returns a refusal for a method that the server does not support. version is the
// protocol version that the client sent. Older clients get status 200, because they do not read the
// body of a 404 response. subscriptions/listen, which would open a permanent stream, always gets
// 404.
func (m message) checkMethod(version string) error {
	if m.id == nil || m.method == "" || slices.Contains(methods, m.method) {
		return nil
	}
	status := http.StatusOK
	if version >= statelessVersion || m.method == "subscriptions/listen" {
		status = http.StatusNotFound
	}
	return &refusal{
		status: status, code: codeNoMethod, id: m.id,
		err: fault.New(fault.NotFound, "mcp.checkMethod", "This server has no such method. It offers only tools."),
	}
}
