package bluesky

import (
	"reflect"
	"strings"
	"testing"
)

// Bluesky refuses a record with a longer facet, so longer pieces stay plain text.
func TestFindFacets_Limits(t *testing.T) {
	t.Parallel()
	ten := "a\u20d0\u20d1\u20d2" // one character of 10 bytes
	label := strings.Repeat("a", 63)
	handle := strings.Join([]string{label, label, label, label[:61]}, ".")
	for name, tc := range map[string]struct {
		text string
		want []seen
	}{
		"a tag of 640 bytes":                      {text: "#" + strings.Repeat(ten, 64), want: []seen{tag(strings.Repeat(ten, 64))}},
		"a tag of 641 bytes stays plain":          {text: "#" + strings.Repeat(ten, 63) + "é\u20d0\u20d1\u20d2", want: nil},
		"a handle of 253 characters":              {text: "@" + handle, want: []seen{mention(handle)}},
		"a handle of 254 characters stays plain":  {text: "@" + handle + "a", want: nil},
		"a handle of much more stays plain":       {text: "@" + strings.Repeat("a.", 500) + "test", want: nil},
		"a label of 63 characters":                {text: "@" + label + ".test", want: []seen{mention(label + ".test")}},
		"a label of 64 characters is no handle's": {text: "@a" + label + ".test", want: nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := pieces(tc.text); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("facets of %q:\n got %q\nwant %q", tc.text, got, tc.want)
			}
		})
	}
}
