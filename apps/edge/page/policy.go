package page

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// Self stands for the page's own origin.
const Self = "'self'"

// Need is something that a page loads or does and that its Content-Security-Policy must therefore
// allow.
type Need struct {
	directive, sources string
	style              string // the style sheet of Style
}

// Forms allows the page's forms to be submitted to these origins.
func Forms(origins ...string) Need { return allow("form-action", origins) }

// Images allows images from these origins.
func Images(origins ...string) Need { return allow("img-src", origins) }

// Scripts allows script files from these origins, but no inline scripts.
func Scripts(origins ...string) Need { return allow("script-src", origins) }

// Styles allows style sheets from these origins.
func Styles(origins ...string) Need { return allow("style-src", origins) }

// Connections allows scripts to make requests to these origins.
func Connections(origins ...string) Need { return allow("connect-src", origins) }

// Style allows one inline style sheet, by its hash. css must be the entire content of the style
// element.
func Style(css string) Need {
	sum := sha256.Sum256([]byte(css))
	n := allow("style-src", []string{"'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"})
	n.style = css
	return n
}

func allow(directive string, origins []string) Need {
	return Need{directive: directive, sources: strings.Join(origins, " ")}
}

// Policy returns a Content-Security-Policy that allows the given needs, in the given order, and
// nothing else. In particular, no site may show the page in a frame. Each kind of need may be given
// only once, because browsers ignore a repeated directive.
func Policy(needs ...Need) string {
	directives, forms := []string{"default-src 'none'"}, false
	for _, n := range needs {
		directives = append(directives, n.directive+" "+n.sources)
		forms = forms || n.directive == "form-action"
	}
	directives = append(directives, "base-uri 'none'")
	if !forms { // default-src does not apply to forms
		directives = append(directives, "form-action 'none'")
	}
	return strings.Join(append(directives, "frame-ancestors 'none'"), "; ")
}
