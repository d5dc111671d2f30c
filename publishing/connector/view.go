package connector

import (
	"io"
	"strings"

	"crier/publishing"
)

// AccountOf returns a channel's Account. Its Destination is empty.
func AccountOf(c publishing.Channel) Account {
	return Account{
		ID: c.AccountID, Name: c.Name, Profile: c.Profile, Picture: c.Picture, Data: c.Account, Grade: c.Grade,
	}
}

// MediaOf returns the Media for a stored file. The function open must open that file. base is this
// service's public URL, with or without a trailing slash.
func MediaOf(m publishing.Medium, alt, base string, open func() (io.ReadCloser, error)) Media {
	return Media{
		ContentType: m.ContentType, Size: m.Size, Width: m.Width, Height: m.Height, Duration: m.Duration(),
		Alt: alt, Name: m.FileName(), Video: m.Video(),
		URL: strings.TrimRight(base, "/") + m.Path(), Open: open,
	}
}
