package richtext_test

import (
	"fmt"

	"crier/publishing/richtext"
)

func ExampleParse() {
	doc := richtext.Parse(`<div>We are <b>open</b>:</div><ol start="3"><li>Tuesday<li>Friday</ol><a href="https://example.com">Book</a>`)
	fmt.Println(doc.HTML())
	fmt.Println(doc.Plain())
	// Output:
	// <p>We are <strong>open</strong>:</p><ol start="3"><li>Tuesday</li><li>Friday</li></ol><p><a href="https://example.com">Book</a></p>
	// We are open:
	// 3. Tuesday
	// 4. Friday
	// Book (https://example.com)
}
