//go:build !long

package bounds

// videoSize is the size of the uploaded videos in bytes.
const videoSize = 160 << 20
