// Package console holds the files of the API console: the npm library Stoplight Elements, which is
// compressed but otherwise unchanged, and the files that adapt it to this service. `ops/console`
// fetches the library, and `ops/console check` compares it with npm.
package console

import "embed"

// Version is the library's version.
const Version = "9.0.25"

// Files holds the library's files, elements-<Version>.js.gz and elements-<Version>.css.gz, and our
// own files, console.js and console.css.
//
//go:embed *.gz console.js console.css
var Files embed.FS
