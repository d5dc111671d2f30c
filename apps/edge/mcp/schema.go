package mcp

// schema is a JSON Schema of the kind that all MCP clients understand: without references, and
// without alternatives at the top. The same schema describes arguments to a model and checks them;
// see readArguments.
type schema struct {
	Type        string             `json:"type,omitempty"`
	Format      string             `json:"format,omitempty"`
	Description string             `json:"description,omitempty"`
	Enum        []any              `json:"enum,omitempty"`
	Default     any                `json:"default,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Minimum     *int               `json:"minimum,omitempty"`
	Maximum     *int               `json:"maximum,omitempty"`
	MinItems    int                `json:"minItems,omitempty"`
	MaxItems    int                `json:"maxItems,omitempty"`
	MaxLength   int                `json:"maxLength,omitempty"`
	Closed      *closed            `json:"additionalProperties,omitempty"`

	// blank keeps an empty text, which otherwise counts as absent.
	blank bool
	// pairs marks a list of keys and values that may also be sent as an object.
	pairs bool
	// next names the tool that lists the values of an id.
	next string
}

// closed is the value of additionalProperties in schemas of arguments.
type closed struct{}

// MarshalJSON implements json.Marshaler. The error is always nil.
func (closed) MarshalJSON() ([]byte, error) { return []byte("false"), nil }

// The types of JSON Schema.
const (
	typeString  = "string"
	typeInteger = "integer"
	typeNumber  = "number"
	typeBoolean = "boolean"
	typeObject  = "object"
	typeArray   = "array"
)

const formatDate = "date-time"

type properties map[string]*schema

// arguments returns the schema of a tool's arguments. Arguments that it does not list are refused.
func arguments(p properties, required ...string) *schema {
	return &schema{Type: typeObject, Properties: p, Required: required, Closed: &closed{}}
}

// object returns the schema of an object in an answer.
func object(description string, p properties, required ...string) *schema {
	return &schema{Type: typeObject, Description: description, Properties: p, Required: required}
}

func list(description string, of *schema) *schema {
	return &schema{Type: typeArray, Description: description, Items: of}
}

func str(description string) *schema { return &schema{Type: typeString, Description: description} }

func flag(description string) *schema { return &schema{Type: typeBoolean, Description: description} }

func number(description string) *schema { return &schema{Type: typeInteger, Description: description} }

// anything returns the schema of any JSON value.
func anything(description string) *schema { return &schema{Description: description} }

// date returns the schema of a date.
func date(description string) *schema {
	return &schema{Type: typeString, Format: formatDate, Description: description}
}

// oneOf returns the schema of a text with the given values.
func oneOf(description string, values ...any) *schema {
	return &schema{Type: typeString, Description: description, Enum: values}
}

// whole returns the schema of a whole number from least to most.
func whole(description string, least, most int) *schema {
	return &schema{Type: typeInteger, Description: description, Minimum: &least, Maximum: &most}
}

// between sets the number of elements of a list.
func (s *schema) between(least, most int) *schema {
	s.MinItems, s.MaxItems = least, most
	return s
}

// as sets the description.
func (s *schema) as(description string) *schema {
	s.Description = description
	return s
}

// standard sets the value that applies if the argument is absent.
func (s *schema) standard(value any) *schema {
	s.Default = value
	return s
}

// from names the tool that lists the values of an id.
func (s *schema) from(tool string) *schema {
	s.next = tool
	return s
}

// channelID returns the schema of the argument that names a channel.
func channelID() *schema {
	return str("Channel id, from service_list_channels.").from(toolListChannels)
}

// postID returns the schema of the argument that names a post.
func postID() *schema { return str("Post id.").from(toolListPosts) }

// cursor returns the schema of the argument that asks for the next page.
func cursor() *schema { return str("nextCursor of the last answer, to continue the list.") }

// answers returns the schema of an answer. beside holds the members beside output.
func answers(output *schema, beside properties) *schema {
	p := properties{"output": output}
	for name, s := range beside {
		p[name] = s
	}
	return object("", p, "output")
}

func nextCursor() *schema { return str("Send it as cursor to get the rest. Absent at the end.") }

// withMoment adds the properties of a moment to those of an object.
func withMoment(p properties) properties {
	p["publishDate"] = date("UTC.")
	p["localDate"] = date("The same time in timezone.")
	p["timezone"] = str("Time zone of the channel.")
	return p
}
