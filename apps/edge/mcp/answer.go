package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"crier/apps/edge/mcp/argument"
	"crier/apps/edge/record"
	"crier/platform/fault"
	"crier/platform/text"
	"crier/tenancy"
)

// maxAnswer is the maximum size of a tool's result, in bytes of JSON. A result contains its data
// twice: as text for models, and as structured content for programs. maxBeside is the part reserved
// for members other than the elements of a list.
const (
	maxAnswer = 25_000
	maxBeside = 1_500
)

// answer is a tool's result. Output holds the data. The other members describe the data.
type answer struct {
	Output any `json:"output"`
	// Now is the current time, in UTC.
	Now string `json:"now,omitempty"`
	// NextCursor requests the rest of a list.
	NextCursor string `json:"nextCursor,omitempty"`
	Replayed   bool   `json:"replayed,omitempty"`
	DryRun     bool   `json:"dryRun,omitempty"`
	// Truncated means that some data was omitted and that no cursor can retrieve it.
	Truncated bool `json:"truncated,omitempty"`
}

// result returns the answer as an SDK result. It returns TooLarge if the result would exceed
// maxAnswer bytes.
func (a answer) result() (*sdk.CallToolResult, error) {
	data, err := encode(a)
	if err != nil {
		return nil, err
	}
	if costOf(data) > maxAnswer {
		return nil, fault.New(fault.TooLarge, "mcp.result", "The result would be larger than 25 kB. Ask for less.")
	}
	return &sdk.CallToolResult{
		Content: []sdk.Content{&sdk.TextContent{Text: string(data)}}, StructuredContent: json.RawMessage(data),
	}, nil
}

// encode returns v as JSON on one line. It does not escape angle brackets, so that models can read
// them.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fault.Wrap(fault.Internal, "mcp.encode", "", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// costOf returns the number of bytes that the given JSON occupies in a result, which contains it
// both as text and as structured content. Special characters count in their escaped form.
func costOf(data []byte) int {
	n := 2*len(data) + 2 // the text is quoted
	for _, c := range data {
		switch c {
		case '"', '\\':
			n++ // in the text
		case '<', '>', '&':
			n += 2 * len(`u0026`) // in both
		}
	}
	return n
}

// fitting returns how many of the elements, starting with the first, fit into one answer. It
// returns at least 1 unless elements is empty. used is the size, in bytes, of the answer's other
// content.
func fitting[T any](elements []T, used int) (n int, err error) {
	left := maxAnswer - maxBeside - used
	for i, x := range elements {
		data, err := encode(x)
		if err != nil {
			return 0, err
		}
		if left -= costOf(data) + 2; left < 0 {
			return max(1, i), nil
		}
	}
	return len(elements), nil
}

// position is a place in a list. Clients see only its encoded form.
type position struct {
	// Tool is the name of the tool that returned the position.
	Tool string `json:"t"`
	// ID is the last listed element's id. It is empty if the elements have no ids.
	ID string `json:"i,omitempty"`
	// At is the last listed element's date.
	At *time.Time `json:"a,omitempty"`
	// Skip is the number of elements before the position.
	Skip int `json:"n,omitempty"`
}

func (p position) cursor() string {
	data, err := json.Marshal(p)
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// readCursor decodes the position in a cursor. If the cursor is empty, readCursor returns the
// beginning of the list.
func (c *call) readCursor(sent string) (p position, err error) {
	if sent == "" {
		return position{}, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(sent)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil || p.Tool != c.tool.name || p.Skip < 0 {
		return position{}, &failure{
			Code: argument.CodeInvalid, Field: "cursor",
			Message: "cursor must be a nextCursor that this tool returned. Omit it to start again.",
		}
	}
	return p, nil
}

// rest returns the elements of a list after the position. If the position has no id, or if its id
// is no longer in the list, rest skips the first p.Skip elements.
func rest[T any](p position, all []T, idOf func(T) string) []T {
	if p.ID != "" {
		for i, x := range all {
			if idOf(x) == p.ID {
				return all[i+1:]
			}
		}
	}
	return all[min(p.Skip, len(all)):]
}

// page returns as many elements after the position as fit into one answer, and a cursor for the
// remaining elements.
func page[T any](c *call, p position, all []T, idOf func(T) string) (part []T, nextCursor string, err error) {
	left := rest(p, all, idOf)
	n, err := fitting(left, 0)
	if err != nil || n == len(left) {
		return left, "", err
	}
	next := position{Tool: c.tool.name, ID: idOf(left[n-1]), Skip: len(all) - len(left) + n}
	return left[:n], next.cursor(), nil
}

// moment is a time in an answer, both in UTC and in the channel's time zone.
type moment struct {
	UTC   string `json:"publishDate"`
	Local string `json:"localDate"`
	Zone  string `json:"timezone"`
}

// momentIn returns t in UTC and in the given zone. It treats an unknown zone as UTC.
func momentIn(t time.Time, zone string) moment {
	known, err := tenancy.LoadZone(zone)
	if err != nil {
		known, zone = time.UTC, "UTC"
	}
	return moment{UTC: record.FormatTime(t), Local: t.In(known).Format(time.RFC3339), Zone: zone}
}

// excerpt truncates a text to most characters. cut reports whether the text was longer.
func excerpt(words string, most int) (out string, cut bool) {
	out = text.Cut(words, most)
	return out, len(out) < len(words)
}
