//go:build !long

package bounds

// videoSize is the size of the videos that are uploaded, in bytes.
const videoSize = 160 << 20
