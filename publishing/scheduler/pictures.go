package scheduler

import (
	"context"
	"errors"
	"io"
	"time"

	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/pictures"
	"crier/publishing/scheduler/dispatch"
	schedulerstore "crier/publishing/scheduler/store"
)

// pictureRecheck is how long a post waits for a picture before the picture's state is read again.
// The state must be read again because another process may be making the picture.
const pictureRecheck = 10 * time.Second

// pictureTime limits the duration of each statement that reads or stores pictures.
const pictureTime = 10 * time.Second

// prepareWithPictures waits for the pictures that a part needs, and then prepares the part. The
// wait does not count toward the time limit for a call.
func (r *run) prepareWithPictures(ctx context.Context, i int) error {
	if err := r.waitForPictures(ctx, i); err != nil {
		return err
	}
	return r.prepare(ctx, i)
}

// mediaOf returns a file in the form that connectors expect. If a picture was derived from the
// file, it returns that picture instead.
func (r *run) mediaOf(ctx context.Context, m publishing.Medium, alt string) connector.Media {
	out := r.Sender.media(ctx, m, alt)
	if d, made := r.pictures[m.ID]; made {
		out.ContentType, out.Size, out.URL = d.ContentType, d.Size, ""
		out.Width, out.Height = d.Width, d.Height
		out.Open = func() (io.ReadCloser, error) { return r.deps.Blobs.Open(ctx, d.BlobKey) }
	}
	return out
}

// waitForPictures waits until all pictures that a part needs have been made. During the wait, it
// holds no permit and keeps renewing the claim.
func (r *run) waitForPictures(ctx context.Context, i int) error {
	x := &r.work.Parts[i]
	var keys []pictures.Key
	for _, m := range x.Media {
		if key, needed := pictures.KeyOf(r.connector, m.ID, r.Sender.media(ctx, m.Medium, m.Alt)); needed {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	for {
		pending, err := r.findPictures(ctx, keys)
		if err != nil || pending == nil {
			return err
		}
		if err := r.awaitPicture(ctx, x, pending.PictureKey); err != nil {
			return err
		}
	}
}

// findPictures reads the states of a part's pictures. It returns one of the pending pictures, or
// nil if all pictures are ready.
func (r *run) findPictures(
	ctx context.Context, keys []pictures.Key,
) (pending *pictures.Derived, err error) {
	ctx, cancel := context.WithTimeout(ctx, pictureTime)
	defer cancel()
	all, err := r.storedPictures(ctx, keys)
	if err != nil {
		const message = "An image of this post could not be looked up."
		return nil, &connector.Error{Kind: connector.KindTransient, Public: message, Err: err}
	}
	r.pictures = map[publishing.MediaID]pictures.Derived{}
	for _, d := range all {
		switch {
		case d.State == pictures.Failed:
			return nil, &connector.Error{Kind: connector.KindContent, Public: d.Error}
		case d.State == pictures.Pending && d.Error != "" && d.Wait > 0:
			// An attempt to make the picture failed, and the next attempt is not due yet.
			return nil, &connector.Error{Kind: connector.KindTransient, After: d.Wait, Public: d.Error}
		case d.State == pictures.Pending:
			pending = &d
		default:
			r.pictures[d.Media] = d
		}
	}
	return pending, nil
}

// storedPictures reads the pictures with the given keys. If it finds fewer pictures than keys, it
// requests the missing ones. It finds fewer if the post is older than the connector's picture rule,
// or contains the same image twice.
func (r *run) storedPictures(
	ctx context.Context, keys []pictures.Key,
) ([]pictures.Derived, error) {
	all, err := pictures.Find(ctx, r.db, r.work.Org, keys)
	if err != nil || len(all) >= len(keys) {
		return all, err
	}
	return pictures.Order(ctx, r.db, r.work.Org, keys)
}

// awaitPicture waits until a pending picture may have changed. It holds no permit during the wait.
func (r *run) awaitPicture(ctx context.Context, x *dispatch.Publication, key pictures.Key) error {
	changed, done := r.deps.Pictures.Await(r.work.Org, key)
	defer done()
	if d, err := r.findPictures(ctx, []pictures.Key{key}); err != nil || d == nil {
		return err // the picture became ready before the watch began
	}
	saving, cancel := context.WithTimeout(ctx, pictureTime)
	kept, err := schedulerstore.SaveHandle(
		saving, r.db, r.work.Post, r.work.Token, x.ID, x.Handle, pictureRecheck+r.claimHold(),
	)
	cancel()
	if err != nil || !kept {
		return errClaimLost(err)
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
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		return nil // the picture has changed
	}
	if err != nil {
		return errStopped(err)
	}
	return nil
}
