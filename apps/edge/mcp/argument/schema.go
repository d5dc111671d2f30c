// Package argument describes the arguments of tools to models, and reads what models send.
package argument

// Schema is a JSON Schema that all MCP clients understand: it has no references, and no
// alternatives at the top level. The same schema describes the arguments to a model and tells Read
// how to check them.
type Schema struct {
	Type        string             `json:"type,omitempty"`
	Format      string             `json:"format,omitempty"`
	Description string             `json:"description,omitempty"`
	Enum        []any              `json:"enum,omitempty"`
	Default     any                `json:"default,omitempty"`
	Properties  map[string]*Schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	Items       *Schema            `json:"items,omitempty"`
	Minimum     *int               `json:"minimum,omitempty"`
	Maximum     *int               `json:"maximum,omitempty"`
	MinItems    int                `json:"minItems,omitempty"`
	MaxItems    int                `json:"maxItems,omitempty"`
	MaxLength   int                `json:"maxLength,omitempty"`
	Closed      *Closed            `json:"additionalProperties,omitempty"`

	// Blank allows an empty string, which would otherwise count as absent.
	Blank bool `json:"-"`
	// Pairs marks a list of key-value pairs that can also be sent as an object.
	Pairs bool `json:"-"`
	// Word marks a text without white space, such as an id. White space, invisible characters and
	// quotation marks that were copied with it are removed; see paste.Word.
	Word bool `json:"-"`
	// Next names the tool that lists an id's possible values.
	Next string `json:"-"`
}

// Closed is the value of additionalProperties in argument schemas.
type Closed struct{}

// MarshalJSON implements json.Marshaler. The error is always nil.
func (Closed) MarshalJSON() ([]byte, error) { return []byte("false"), nil }

// The types of JSON Schema.
const (
	TypeString  = "string"
	TypeInteger = "integer"
	TypeNumber  = "number"
	TypeBoolean = "boolean"
	TypeObject  = "object"
	TypeArray   = "array"
)

// FormatDate is the format of a date.
const FormatDate = "date-time"

// Between sets the minimum and maximum number of elements in a list.
func (s *Schema) Between(least, most int) *Schema {
	s.MinItems, s.MaxItems = least, most
	return s
}

// As sets the description.
func (s *Schema) As(description string) *Schema {
	s.Description = description
	return s
}

// Standard sets the default value.
func (s *Schema) Standard(value any) *Schema {
	s.Default = value
	return s
}

// From marks an id and sets the name of the tool that lists its possible values.
func (s *Schema) From(tool string) *Schema {
	s.Next, s.Word = tool, true
	return s
}

// AsWord sets Word.
func (s *Schema) AsWord() *Schema {
	s.Word = true
	return s
}
