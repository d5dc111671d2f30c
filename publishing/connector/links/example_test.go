package links_test

import (
	"fmt"

	"crier/publishing/connector/links"
)

func ExampleFind() {
	text := "Read it (https://example.com/a_(b)), or ask at example.org."
	for _, l := range links.Find(text) {
		fmt.Printf("%q leads to %s\n", text[l.Start:l.End], l.Address)
	}
	// Output:
	// "https://example.com/a_(b)" leads to https://example.com/a_(b)
	// "example.org" leads to https://example.org
}
