package nostr

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

// bomb returns a message of 2 MB whose elements would take far more memory.
func bomb(label string) string { return `["` + label + `"` + strings.Repeat(",1", 990_000) + `]` }

// counted counts the bytes that are read through it.
type counted struct {
	io.Reader
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

func TestFrame_StopsEarlyAtInvalidMessage(t *testing.T) {
	t.Parallel()
	for _, label := range append([]string{"NOTICE", "unknown"}, labels...) {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			r := &counted{Reader: strings.NewReader(bomb(label))}
			_, rest, err := frame(r)
			if err == nil || len(rest) != 0 || r.n > 4<<10 {
				t.Errorf("got %d elements and %v after %d bytes, want an error within 4096", len(rest), err, r.n)
			}
		})
	}
}

func TestFrame_AcceptsOnlyProtocolMessages(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]int{ // the number of elements after the label, 0 if refused
		`["OK","id",true,""]`:               3,
		` [ "EOSE" , "q" ] `:                1,
		`["CLOSED","q","auth-required: x"]`: 2,
		`["EVENT","q",{"id":"[,]"}]`:        2,
		`["AUTH","challenge"]`:              1,
		`["OK",1,2,3,4,5,6,7]`:              7,
		`["OK",1,2,3,4,5,6,7,8]`:            0,
		`["NOTICE","words"]`:                0,
		`["OK"]`:                            0,
		`[]`:                                0,
		``:                                  0,
		`{"OK":"id"}`:                       0,
		`"OK"`:                              0,
		`null`:                              0,
		`[["OK"],"id",true]`:                0,
		`["OK","id",true`:                   0,
		`["OK","id",true}`:                  0,
		`["OK","id",true] true`:             0,
		`["OK","id",true]]`:                 0,
		`["OK" "id" true]`:                  0,
	} {
		label, rest, err := frame(strings.NewReader(raw))
		if len(rest) != want || (err == nil) != (want > 0) || (label == "") != (want == 0) {
			t.Errorf("%s: got %q with %d elements, %v; want %d", raw, label, len(rest), err, want)
		}
	}
}

func TestTags_AreBounded(t *testing.T) {
	t.Parallel()
	many := func(one string, n int) string { return strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
	for name, tc := range map[string]struct {
		raw  string
		want error
	}{
		"the largest number of tags":   {raw: "[" + many(`["t","a"]`, maxTags) + "]", want: nil},
		"one tag more":                 {raw: "[" + many(`[]`, maxTags+1) + "]", want: errShape},
		"the largest number of values": {raw: "[[" + many(`""`, maxValues) + "]]", want: nil},
		"one value more":               {raw: "[[" + many(`""`, maxValues+1) + "]]", want: errShape},
		"no array":                     {raw: `"t"`, want: errShape},
	} {
		var e event
		if err := json.Unmarshal([]byte(`{"tags":`+tc.raw+`}`), &e); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", name, err, tc.want)
		}
	}
	var e event
	if err := json.Unmarshal([]byte(`{"tags":[["a","b"],[]]}`), &e); err != nil || len(e.Tags) != 2 || e.Tags[0][1] != "b" {
		t.Errorf("got the tags %q, %v; want both", e.Tags, err)
	}
}
