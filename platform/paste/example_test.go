package paste_test

import (
	"fmt"

	"crier/platform/paste"
)

func Example() {
	fmt.Printf("%q\n", paste.Word("“@ada.example\u200b”\n"))      // a handle, with quotation marks and a hidden character
	fmt.Printf("%q\n", paste.Figures("2026–11–28\u00a009:00"))    // a date, with dashes and a no-break space
	fmt.Printf("%q\n", paste.Line("\u2069 Ada's channel \ufeff")) // a name, with hidden characters
	// Output:
	// "@ada.example"
	// "2026-11-28 09:00"
	// "Ada's channel"
}
