package publishing

import (
	"strconv"
	"time"

	"crier/tenancy"
)

// The default upload limits in bytes.
const (
	MaxImageSize = 10 << 20
	MaxVideoSize = 1 << 30
)

// Medium is a stored file of an organization.
type Medium struct {
	ID  MediaID
	Org tenancy.OrgID
	// Key is an unguessable part of its URL.
	Key string
	// Name is the file name without extension, in characters that are safe in a URL.
	Name string
	// Ext is png, jpg, jpeg, gif or mp4.
	Ext         string
	ContentType string
	// Size is in bytes.
	Size int64
	// Width is in pixels; 0 means not known.
	Width int
	// Height is in pixels; 0 means not known.
	Height       int
	OriginalName string
	// CreatedAt is by the clock of the process that stored the upload.
	CreatedAt time.Time
}

// Path returns where the file is served, under the base URL: /files/{key}/{name}.{ext}.
func (m Medium) Path() string { return "/files/" + m.Key + "/" + m.Name + "." + m.Ext }

// BlobKey returns the key of the file in the blob store: {org}/{key}. Nothing that a client chose is in it.
func (m Medium) BlobKey() string { return m.Org.String() + "/" + m.Key }

// DerivedKey returns the blob key of a picture that is derived from this image. Each attempt to make it has its own
// key.
func (m Medium) DerivedKey(spec string, attempt int) string {
	return m.BlobKey() + "." + spec + "." + strconv.Itoa(attempt)
}

// Video reports whether the medium is a video; everything else is an image.
func (m Medium) Video() bool { return m.Ext == "mp4" }
