package nostr

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseRelays_AcceptsAtMost20(t *testing.T) {
	t.Parallel()
	list := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("wss://relay%d.example.com", i))
		}
		return strings.Join(all, ", ")
	}
	for name, c := range map[string]struct {
		typed string
		want  int // 0 if the form is refused
	}{
		"none takes the defaults":   {typed: "", want: 5},
		"one":                       {typed: list(1), want: 1},
		"twenty":                    {typed: list(20), want: 20},
		"twenty, one of them twice": {typed: list(20) + " WSS://RELAY1.example.com/", want: 20},
		"twenty-one":                {typed: list(21), want: 0},
		"a thousand":                {typed: list(1000), want: 0},
		"only commas":               {typed: ",", want: 0},
	} {
		got, err := parseRelays(c.typed)
		if len(got) != c.want || (err != nil) != (c.want == 0) {
			t.Errorf("%s: got %d relays and %v, want %d", name, len(got), err, c.want)
		}
	}
}
