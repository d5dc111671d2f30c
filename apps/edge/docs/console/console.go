// Package console has the files of the API console: a library from npm, Stoplight Elements, compressed and unchanged,
// and what fits it to this service. `ops/console` fetches the library, and `ops/console check` compares it with npm.
package console

import "embed"

// Version is that of the library.
const Version = "9.0.25"

// Files are the library, elements-<Version>.js.gz and elements-<Version>.css.gz, and console.js and console.css.
//
//go:embed *.gz console.js console.css
var Files embed.FS
