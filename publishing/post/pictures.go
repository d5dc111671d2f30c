package post

import (
	"context"

	"crier/platform/fault"
	"crier/publishing/db"
	"crier/publishing/pictures"
)

// wantPictures requests the pictures that an entry needs and returns their keys. Missing pictures
// are stored as pending, in the transaction that writes the entry's posts. It returns Invalid if an
// earlier attempt to make one of the pictures has failed permanently.
func (s *checker) wantPictures(
	ctx context.Context, tx *db.Tx, e checked,
) ([]pictures.Key, error) {
	keys := s.pictures(ctx, e)
	if len(keys) == 0 {
		return nil, nil
	}
	all, err := pictures.Want(ctx, tx, keys)
	if err != nil {
		return nil, err
	}
	var problems []fault.Item
	for _, d := range all {
		if d.State == pictures.Failed {
			problems = append(problems, problemOf(e.channel, 0, 1, d.Error))
		}
	}
	if len(problems) > 0 {
		return nil, contentFault(problems)
	}
	return keys, nil
}

// pictures returns the keys of the pictures that an entry's parts need. It returns none if this
// process does not support the platform.
func (s *checker) pictures(ctx context.Context, e checked) (keys []pictures.Key) {
	c, ok := s.connectors.Get(e.channel.Connector)
	if !ok {
		return nil
	}
	for _, part := range e.parts {
		for _, m := range part.media {
			if key, needed := pictures.KeyOf(c, m.ID, s.media(ctx, m.Medium, m.Alt)); needed {
				keys = append(keys, key)
			}
		}
	}
	return keys
}
