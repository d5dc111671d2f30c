package service

import (
	"context"

	"crier/platform/fault"
	"crier/publishing/pictures"
	publishingstore "crier/publishing/store"
)

// pictures returns the pictures that the parts of a checked entry need.
func (s *Posts) pictures(ctx context.Context, e checked) (keys []publishingstore.PictureKey) {
	c, ok := s.deps.Connectors.Get(e.channel.Connector)
	if !ok {
		return nil
	}
	for _, part := range e.parts {
		for _, m := range part.media {
			if key, needed := pictures.KeyOf(c, m.ID, s.media(ctx, m.Medium, m.alt)); needed {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// want writes the pictures of an entry as pending, in the transaction of its posts. An image that is known not to fit
// is the entry's fault.
func (s *Posts) want(ctx context.Context, tx *publishingstore.Tx, e checked) (keys []publishingstore.PictureKey, err error) {
	if keys = s.pictures(ctx, e); len(keys) == 0 {
		return nil, nil
	}
	all, err := tx.WantPictures(ctx, keys)
	if err != nil {
		return nil, err
	}
	var problems []fault.Channel
	for _, d := range all {
		if d.State == publishingstore.PictureFailed {
			problems = append(problems, problemOf(e.channel, 0, 1, d.Error))
		}
	}
	if len(problems) > 0 {
		return nil, contentFault(problems)
	}
	return keys, nil
}
