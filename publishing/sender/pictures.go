package sender

import (
	"context"
	"errors"
	"io"
	"time"

	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/pictures"
	publishingstore "crier/publishing/store"
)

// pictureRecheck is how long a post waits for a picture before it looks again: another process may make it.
const pictureRecheck = 10 * time.Second

// pictureTime is how long a statement about pictures may take.
const pictureTime = 10 * time.Second

// prepareWithPictures is prepare, once the pictures that the part needs are made. Waiting for them is outside of the
// deadline of a call.
func (r *run) prepareWithPictures(ctx context.Context, i int) error {
	if err := r.pictures(ctx, i); err != nil {
		return err
	}
	return r.prepare(ctx, i)
}

// picture is the connector's view of an image, or of the picture that was made of it.
func (r *run) picture(ctx context.Context, m publishing.Medium, alt string) connector.Media {
	out := r.Sender.media(ctx, m, alt)
	if d, made := r.derived[m.ID]; made {
		out.ContentType, out.Size, out.Width, out.Height, out.URL = d.ContentType, d.Size, d.Width, d.Height, ""
		out.Open = func() (io.ReadCloser, error) { return r.deps.Blobs.Open(ctx, d.BlobKey) }
	}
	return out
}

// pictures waits, without a permit, until the pictures that a part needs are made. It renews the claim meanwhile.
func (r *run) pictures(ctx context.Context, i int) error {
	x := &r.w.Parts[i]
	var keys []publishingstore.PictureKey
	for _, m := range x.Media {
		if key, needed := pictures.KeyOf(r.c, m.ID, r.Sender.media(ctx, m.Medium, m.Alt)); needed {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	pending, err := r.findPictures(ctx, keys)
	for err == nil && pending != nil {
		err = r.awaitPicture(ctx, x, pending.PictureKey)
		if err == nil {
			pending, err = r.findPictures(ctx, keys)
		}
	}
	return err
}

// findPictures reads how the pictures of a part stand, and returns one that is pending, or nil when all are ready.
func (r *run) findPictures(
	ctx context.Context, keys []publishingstore.PictureKey,
) (pending *publishingstore.DerivedPicture, err error) {
	ctx, cancel := context.WithTimeout(ctx, pictureTime)
	defer cancel()
	all, err := r.store.Pictures(ctx, r.w.Org, keys)
	if err == nil && len(all) < len(keys) { // saved before its platform needed this, or with an image attached twice
		all, err = r.store.WantPictures(ctx, r.w.Org, keys)
	}
	if err != nil {
		return nil, &connector.Error{Kind: connector.KindTransient, Public: "An image of this post could not be looked up.", Err: err}
	}
	r.derived = map[publishing.MediaID]publishingstore.DerivedPicture{}
	for _, d := range all {
		switch {
		case d.State == publishingstore.PictureFailed:
			return nil, &connector.Error{Kind: connector.KindContent, Public: d.Error}
		case d.State == publishingstore.PicturePending && d.Error != "" && d.Wait > 0: // the next attempt is some time off
			return nil, &connector.Error{Kind: connector.KindTransient, After: d.Wait, Public: d.Error}
		case d.State == publishingstore.PicturePending:
			pending = &d
		default:
			r.derived[d.Media] = d
		}
	}
	return pending, nil
}

// awaitPicture gives the permit back until a pending picture may have changed.
func (r *run) awaitPicture(ctx context.Context, x *publishing.Publication, key publishingstore.PictureKey) error {
	changed, done := r.deps.Pictures.Await(r.w.Org, key)
	defer done()
	if d, err := r.findPictures(ctx, []publishingstore.PictureKey{key}); err != nil || d == nil {
		return err // it was ready before the watch began
	}
	saving, cancel := context.WithTimeout(ctx, pictureTime)
	kept, err := r.store.SaveHandle(saving, r.w.Post, r.w.Token, x.ID, x.Handle, pictureRecheck+r.hold())
	cancel()
	if err != nil || !kept {
		return lost(err)
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-changed:
			stop()
		case <-waiting.Done():
		}
	}()
	err = r.yield(waiting, pictureRecheck)
	if err == nil || errors.Is(err, context.Canceled) && ctx.Err() == nil {
		return nil
	}
	return &connector.Error{Kind: connector.KindTransient, Public: "Crier was stopped while publishing.", Err: err}
}
