package publishing

import (
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"crier/platform/fault"
	"crier/tenancy"
)

// The default upload limits, in bytes.
const (
	MaxImageSize = 10 << 20
	MaxVideoSize = 1 << 30
)

// Medium is a file that an organization has stored.
type Medium struct {
	ID  MediaID
	Org tenancy.OrgID
	// Key is the unguessable part of the file's URL.
	Key string
	// Blob is the Key of the first file that has the same bytes. The bytes are stored only once,
	// under that key.
	Blob string
	// Name is the file name without its extension, in NFC. It may contain letters of any script. It
	// contains no separators, control characters, or characters with a special meaning in URLs or
	// headers.
	Name string
	// Ext is png, jpg, jpeg, gif or mp4.
	Ext         string
	ContentType string
	// Size is the size of the published file in bytes.
	Size int64
	// Stored is the size of the uploaded file in bytes. The upload is stored unchanged.
	Stored int64
	// Edits describes the bytes to replace when the stored file is published; see
	// publishing/file/metadata.
	Edits []byte
	// Width is in pixels; 0 means unknown.
	Width int
	// Height is in pixels; 0 means unknown.
	Height int
	// DurationMS is the length of a video in milliseconds; 0 means unknown.
	DurationMS   int64
	OriginalName string
	// Alt is the alternative text used for attachments that have no alternative text of their own.
	Alt string
	// CreatedAt is when the upload was stored, according to the clock of the process that stored
	// it.
	CreatedAt time.Time
}

// FileName returns the name with its extension.
func (m Medium) FileName() string { return m.Name + "." + m.Ext }

// Path returns the path at which the file is served, relative to the base URL. The form is
// /files/{key}/{name}.{ext}, with non-ASCII letters percent-encoded as UTF-8.
func (m Medium) Path() string { return "/files/" + m.Key + "/" + url.PathEscape(m.FileName()) }

// BlobKey returns the key under which the bytes are stored in the blob store: {org}/{blob}. No part
// of the key is chosen by a client.
func (m Medium) BlobKey() string { return m.Org.String() + "/" + m.Blob }

// DerivedKey returns the blob key of a picture derived from this image:
// {org}/{key}.{spec}.{attempt}. Files with the same bytes have separate pictures, and each attempt
// to make a picture has a separate key.
func (m Medium) DerivedKey(spec string, attempt int) string {
	return m.Org.String() + "/" + m.Key + "." + spec + "." + strconv.Itoa(attempt)
}

// Video reports whether the medium is a video; everything else is an image.
func (m Medium) Video() bool { return m.Ext == "mp4" }

// Duration returns the length of a video; 0 means unknown.
func (m Medium) Duration() time.Duration { return time.Duration(m.DurationMS) * time.Millisecond }

// MediaPerPage is the number of files per page of ListMedia.
const MediaPerPage = 18

// ListMedia requests one page of an organization's files.
type ListMedia struct {
	// Page starts at 1.
	Page int
	// Search limits the list to files whose names contain the given text. If Search is "", all
	// files are listed.
	Search string
}

// The limits of ListMedia.
const (
	maxMediaPage   = 1_000_000
	maxMediaSearch = 255 // characters
)

// Validate returns an Invalid fault if the page number is out of range, or if the search text
// cannot match any file.
func (q ListMedia) Validate() error {
	var faults fault.List
	if q.Page < 1 || q.Page > maxMediaPage {
		faults.Add("page", "must be a number from 1 to 1000000")
	}
	if len([]rune(q.Search)) > maxMediaSearch || !Storable(q.Search) {
		faults.Add("search", "must be at most 255 characters of valid text")
	}
	return faults.Err("publishing.ListMedia", "The page is not valid.")
}

// MediaPage is one page of an organization's files, newest first.
type MediaPage struct {
	Media []Medium
	// Pages is the number of pages, or 0 if there are no files.
	Pages int
}

// VideoStream is a video from another server, or a byte range of the video.
type VideoStream struct {
	// Body must be closed by the caller.
	Body io.ReadCloser
	// Size is the number of bytes in Body, or -1 if it is unknown.
	Size int64
	// ContentRange is the Content-Range header if Body is only a part of the video. It is "" if
	// Body is the whole video.
	ContentRange string
}

// FileKey returns the media key if raw is the URL of a file on this instance; otherwise, ours is
// false. A URL without a host counts as a URL on this instance.
func FileKey(baseURL, raw string) (key string, ours bool) {
	path := ownPath(baseURL, raw)
	if len(path) != 4 || path[0] != "" || path[1] != "files" {
		return "", false
	}
	return path[2], true
}

// ownPath returns the segments of raw's path below baseURL, or nil if raw is a URL on another
// instance. The first segment of an absolute path is empty.
func ownPath(baseURL, raw string) []string {
	u, err := url.Parse(raw)
	base, baseErr := url.Parse(baseURL)
	if err != nil || baseErr != nil || raw == "" {
		return nil
	}
	if u.Host != "" && (!strings.EqualFold(u.Host, base.Host) || u.Scheme != base.Scheme) {
		return nil
	}
	return strings.Split(strings.TrimPrefix(u.Path, strings.TrimRight(base.Path, "/")), "/")
}

// UploadAddress is a URL that takes one file. Whoever has it can upload, without another
// credential. Example: https://crier.example.com/upload/cru_...
type UploadAddress struct {
	Org tenancy.OrgID
	// URL is set only when the address is created, because only the hash of its token is stored.
	URL string
	// Via is the kind of the credential that asked for the address, tenancy.ViaKey or
	// tenancy.ViaAgent. Credential is the SHA-256 hash of that API key or access token, which must
	// still work when the file arrives.
	Via        tenancy.Via
	Credential []byte
	ExpiresAt  time.Time
	// Medium is the uploaded file, or zero. Only the address's own organization can read it.
	Medium MediaID
}

// UploadToken returns the token if raw is an upload address of this instance; otherwise, ours is
// false. It does not check whether the address exists.
func UploadToken(baseURL, raw string) (token string, ours bool) {
	path := ownPath(baseURL, raw)
	if len(path) == 4 && path[3] == "" { // a trailing slash
		path = path[:3]
	}
	if len(path) != 3 || path[0] != "" || path[1] != "upload" {
		return "", false
	}
	return path[2], true
}
