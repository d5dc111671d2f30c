// Package docs contains the manual as Markdown pages. The service renders them at /docs.
package docs

import "embed"

// Pages holds the pages by path. Example: self-hosting/install.md.
//
//go:embed developing/*.md self-hosting/*.md using/*.md
var Pages embed.FS
