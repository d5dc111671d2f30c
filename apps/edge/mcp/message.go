package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

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
	var members map[string]json.RawMessage
	if !utf8.Valid(body) || json.Unmarshal(body, &members) != nil {
		return m, invalidMessage(codeParse, "The body must be a JSON-RPC message: a JSON object in UTF-8.")
	}
	rule := ""
	var version string
	var params map[string]json.RawMessage
	switch id := members["id"]; {
	case !isID(id):
		rule = fmt.Sprintf("id must be a string of at most %d bytes, or a whole number from -%d to %d.", maxID, maxWhole, maxWhole)
	case !isText(members["jsonrpc"], &version) || version != "2.0":
		rule = `jsonrpc must be "2.0".`
	case !isText(members["method"], &m.method):
		rule = "method must be a string."
	case members["params"] != nil && json.Unmarshal(members["params"], &params) != nil:
		rule = "params must be an object."
	case m.method == "tools/call" && !isText(params["name"], &m.tool):
		rule = "params.name must be a string: the name of a tool."
	case string(id) != "null":
		m.id = id
	}
	if rule != "" {
		return message{}, invalidMessage(codeInvalidRequest, rule)
	}
	return m, nil
}

// maxWhole is the largest whole number that all JSON libraries represent exactly.
const maxWhole = 1<<53 - 1

// isID reports whether a value can be the id of a message: absent, null, a string, or a whole
// number that a response can repeat exactly.
func isID(raw json.RawMessage) bool {
	var words string
	if len(raw) == 0 || isText(raw, &words) || string(raw) == "null" {
		return len(raw) <= maxID
	}
	n, ok := route.ParseWhole(string(raw))
	return ok && n >= -maxWhole && n <= maxWhole
}

// isText reports whether a value is absent or a string, which it stores in words.
func isText(raw json.RawMessage, words *string) bool {
	return len(raw) == 0 || json.Unmarshal(raw, words) == nil && string(raw) != "null"
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
