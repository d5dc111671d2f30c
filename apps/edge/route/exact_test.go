package route

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"crier/apps/edge/problem"
)

type embedded struct {
	Role string `json:"role"`
}

type exactBody struct {
	embedded
	Name  *string    `json:"name,omitempty"`
	At    time.Time  `json:"at"`
	Parts []embedded `json:"parts"`
	Inner *embedded  `json:"inner"`
	Any   any        `json:"any"`
	Kept  string     `json:"-"`
}

func TestUnmarshalExact_ComparesCase(t *testing.T) {
	t.Parallel()
	name := "Ada"
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]exactBody{
		`{"role":"USER","Role":"SUPERADMIN","ROLE":"SUPERADMIN"}`: {embedded: embedded{Role: "USER"}},
		`{"Role":"SUPERADMIN","NAME":"Ada","Kept":"x","-":"x"}`:   {},
		`{"name":"Ada","at":"2026-01-02T03:04:05Z"}`:              {Name: &name, At: at},
		`{"parts":[{"role":"USER","Role":"x"},{"ROLE":"x"}]}`:     {Parts: []embedded{{Role: "USER"}, {}}},
		`{"inner":{"Role":"x"},"any":{"Role":"x"}}`:               {Inner: &embedded{}, Any: map[string]any{"Role": "x"}},
		` null`: {},
	} {
		var got exactBody
		if err := unmarshalExact([]byte(text), &got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
	for _, bad := range []string{``, `{`, `{"role":1}`, `{"name":[]}`, `[]`, `{"parts":[{]}`} {
		if unmarshalExact([]byte(bad), &exactBody{}) == nil {
			t.Errorf("%s: got no error, want one", bad)
		}
	}
	for text, field := range map[string]string{
		`{"name":"cut \ud83d"}`: "name", `{"parts":[{"role":"\ude00"}]}`: "parts.0.role", `{"any":{"a":["x","\ud83d\ud83d\ude00"]}}`: "any",
		`{"name":"\ud83d\\ude00"}`: "name", `{"Kept":"\ud83d","name":"\\ud83d \ud83d\ude00"}`: "",
		`{"any":` + strings.Repeat("[", 9000) + `"\ud83d"` + strings.Repeat("]", 9000) + `}`: "any",
	} {
		var half problem.DecodeError
		err := unmarshalExact([]byte(text), &exactBody{})
		if errors.As(err, &half) != (field != "") || half.Field != field || field != "" && half.Rule != HalfCharacter {
			t.Errorf("%s: got %v, want a fault of %q", text, err, field)
		}
	}
	var whole any
	if err := unmarshalExact([]byte(`{"Role":1}`), &whole); err != nil || !reflect.DeepEqual(whole, map[string]any{"Role": 1.0}) {
		t.Errorf("got %v, %v, want all members", whole, err)
	}
}
