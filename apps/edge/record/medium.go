package record

import (
	"crier/publishing"
)

// Medium is an uploaded file. Thumbnail is always null, and Alt is null if it is empty.
type Medium struct {
	ID           string  `json:"id" doc:"Id of the file; use it as image[].id in POST /posts."`
	URL          string  `json:"url" doc:"Public URL of the file."`
	Path         string  `json:"path" doc:"Same as url."`
	Name         string  `json:"name" doc:"File name, with the extension of the detected type."`
	OriginalName string  `json:"originalName,omitempty" doc:"File name as it was uploaded."`
	Thumbnail    *string `json:"thumbnail" nullable:"true" doc:"Always null."`
	Alt          *string `json:"alt" nullable:"true" doc:"Alternative text for people who cannot see the file; null if there is none."`
}

// Medium returns the record of a file.
func (b Base) Medium(m publishing.Medium) Medium {
	url := string(b) + m.Path()
	out := Medium{ID: m.ID.String(), URL: url, Path: url, Name: m.FileName(), OriginalName: m.OriginalName}
	if m.Alt != "" {
		out.Alt = &m.Alt
	}
	return out
}

// Image is an image or a video attached to a part of a post.
type Image struct {
	ID   string `json:"id" doc:"Id of the file."`
	URL  string `json:"url" doc:"URL of the file; empty if it was deleted."`
	Path string `json:"path" doc:"Same as url."`
	Type string `json:"type" enum:"image,video" doc:"Kind of file. For a deleted file, the kind is always image."`
	Alt  string `json:"alt,omitempty" doc:"Alternative text for people who cannot see the file; absent if there is none."`
}

// image calls ImageRecord with b as the base.
func (b Base) image(at publishing.Attachment, media map[publishing.MediaID]publishing.Medium) Image {
	return ImageRecord(string(b), at, media)
}

// ImageRecord returns the record of an attachment, with a URL that begins with base. If the file
// was deleted, the URL is empty and the type is image, even if the file was a video.
func ImageRecord(base string, at publishing.Attachment, media map[publishing.MediaID]publishing.Medium) Image {
	m, ok := media[at.Media]
	if !ok {
		return Image{ID: at.Media.String(), Type: "image", Alt: at.Alt}
	}
	url := base + m.Path()
	out := Image{ID: m.ID.String(), URL: url, Path: url, Type: "image", Alt: at.Alt}
	if m.Video() {
		out.Type = "video"
	}
	return out
}
