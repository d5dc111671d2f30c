//go:build long

package bounds

// videoSize is the size of the uploaded videos in bytes: the default of MAX_VIDEO_BYTES.
const videoSize = 1 << 30
