package publishing

import (
	"strconv"
	"time"

	"crier/tenancy"
)

// The upload limits in bytes, when nothing else is configured.
const (
	MaxImageSize = 10 << 20
	MaxVideoSize = 1 << 30
)

// Medium is a stored file of an organization.
type Medium struct {
	ID           MediaID
	Org          tenancy.OrgID
	Key          string // unguessable, part of its URL
	Name         string // file name without extension, safe in a URL
	Ext          string // png, jpg, jpeg, gif or mp4
	ContentType  string
	Size         int64
	Width        int // pixels; 0 when not known
	Height       int
	OriginalName string
	CreatedAt    time.Time
}

// Path is where the file is served, under the base URL: /files/{key}/{name}.{ext}.
func (m Medium) Path() string { return "/files/" + m.Key + "/" + m.Name + "." + m.Ext }

// BlobKey is where the bytes lie in the blob store.
func (m Medium) BlobKey() string { return m.Org.String() + "/" + m.Key }

// DerivedKey is where the bytes of a picture made of this image lie, one key for each attempt to make it.
func (m Medium) DerivedKey(spec string, attempt int) string {
	return m.BlobKey() + "." + spec + "." + strconv.Itoa(attempt)
}

// Video tells whether the medium is a video; everything else is an image.
func (m Medium) Video() bool { return m.Ext == "mp4" }
