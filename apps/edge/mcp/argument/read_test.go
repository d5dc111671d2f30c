package argument

import (
	"encoding/json"
	"errors"
	"testing"
)

// example returns a schema with a value of each type.
func example() *Schema {
	least, most := 1, 9
	return &Schema{Type: TypeObject, Properties: map[string]*Schema{
		"name":  {Type: TypeString, Enum: []any{"a", "b"}},
		"text":  {Type: TypeString, Blank: true},
		"count": {Type: TypeInteger, Minimum: &least, Maximum: &most},
		"on":    {Type: TypeBoolean},
		"at":    {Type: TypeString, Format: FormatDate},
		"any":   {},
		"id":    {Type: TypeString, Word: true},
		"list":  {Type: TypeArray, Items: &Schema{Type: TypeString}, MinItems: 1, MaxItems: 2},
		"alt":   {Type: TypeArray, Items: &Schema{Type: TypeString, Blank: true}},
		"pairs": {Type: TypeArray, Pairs: true, Items: &Schema{Type: TypeObject, Properties: map[string]*Schema{"key": {Type: TypeString}, "value": {}}}},
	}}
}

func TestRead_TakesWhatModelsSend(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		``: `{}`, `null`: `{}`, `{}`: `{}`, `{"name":null,"count":null}`: `{}`, `{"name":" ","text":" "}`: `{"text":" "}`,
		`{"count":"7"}`: `{"count":7}`, `{"count":7.0}`: `{"count":7}`, `{"on":"false"}`: `{"on":false}`,
		`{"at":"2026-01-02T03:04:05+01:00"}`: `{"at":"2026-01-02T02:04:05Z"}`, `{"text":5}`: `{"text":"5"}`,
		`{"list":"x"}`: `{"list":["x"]}`, `{"list":"[\"x\",\"y\"]"}`: `{"list":["x","y"]}`, `{"list":["x",null]}`: `{"list":["x"]}`,
		`{"list":[null,"x",null,"y"]}`: `{"list":["x","y"]}`, `{"alt":[null,"x"]}`: `{"alt":["","x"]}`, `{"pairs":[null]}`: `{"pairs":[]}`,
		`{"pairs":{"a":1,"b":null}}`:                       `{"pairs":[{"key":"a","value":1},{"key":"b","value":null}]}`,
		`{"pairs":{"key":"a","value":{"x":1}}}`:            `{"pairs":[{"key":"a","value":{"x":1}}]}`,
		`{"pairs":"{\"a\":1e400}"}`:                        `{"pairs":[{"key":"a","value":1e400}]}`,
		"{\"id\":\" \u200b\u201c018f-a\u2013b\u201d\\n\"}": `{"id":"018f-a-b"}`, `{"name":"\"a\" "}`: `{"name":"a"}`,
		`{"any":[1,"2",null]}`: `{"any":[1,"2",null]}`,
	} {
		got, _, err := Read(example(), json.RawMessage(sent))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s and %v, want %s", sent, got, err, want)
		}
	}
}

func TestRead_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]struct{ code, field string }{
		`[]`:                       {CodeInvalid, ""},
		`{`:                        {CodeInvalid, ""},
		`{"x":1}`:                  {CodeUnknown, "x"},
		`{"name":"c"}`:             {CodeInvalid, "name"},
		`{"count":0}`:              {CodeInvalid, "count"},
		`{"count":"ten"}`:          {CodeInvalid, "count"},
		`{"count":1e99}`:           {CodeInvalid, "count"},
		`{"on":1}`:                 {CodeInvalid, "on"},
		`{"at":5}`:                 {CodeInvalid, "at"},
		`{"at":"2026-01-02"}`:      {CodeInvalid, "at"},
		`{"list":["a","b","c"]}`:   {CodeInvalid, "list"},
		`{"list":[["a"]]}`:         {CodeInvalid, "list.0"},
		`{"list":[null]}`:          {CodeInvalid, "list"},
		`{"list":[null,["a"]]}`:    {CodeInvalid, "list.1"},
		`{"pairs":[null,{"k":1}]}`: {CodeUnknown, "pairs.1.k"},
		`{"pairs":[{"k":1}]}`:      {CodeUnknown, "pairs.0.k"},
		`{"text":"a\u0000"}`:       {CodeInvalid, "text"},
		`{"name":"c","count":0}`:   {CodeInvalid, "count"},
		`{"name":"a","NAME":null}`: {CodeUnknown, "NAME"},
	} {
		_, _, err := Read(example(), json.RawMessage(sent))
		var f *Failure
		if !errors.As(err, &f) || f.Code != want.code || f.Field != want.field || f.Message == "" {
			t.Errorf("%s: got %v, want %+v", sent, err, want)
		}
	}
}

func TestIndices_FindWhatWasSent(t *testing.T) {
	t.Parallel()
	_, indices, err := Read(example(), json.RawMessage(`{"list":["x",null,"y"],"pairs":[null,{"key":"a","value":null}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"list.0": "list.0", "list.1": "list.2", "list.2": "list.2", "list": "list", "pairs.0.key": "pairs.1.key", "name": "name", "": "",
	} {
		if got := indices.Sent(path); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}

// FuzzRead: whatever is sent, Read returns JSON or a failure.
func FuzzRead(f *testing.F) {
	f.Add(`{"name":"a","count":"7","pairs":{"a":1},"at":"2026-01-02T03:04:05Z"}`)
	f.Add(`{"list":"[","pairs":"{\"key\":1}","any":{"a":[1e5]}}`)
	f.Fuzz(func(t *testing.T, sent string) {
		got, _, err := Read(example(), json.RawMessage(sent))
		var known *Failure
		if err != nil && !errors.As(err, &known) || err == nil && !json.Valid(got) {
			t.Errorf("%q: got %s and %v", sent, got, err)
		}
	})
}
