package pictures

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"crier/platform/pg"
	"crier/publishing/file/picture"
	picturesstore "crier/publishing/pictures/store"
)

// recordOutcome records the outcome of an attempt. If recording fails, a search finds the picture
// again after the lease has expired.
func (p *Maker) recordOutcome(
	ctx context.Context, job pictureJob, taken picturesstore.TakenPicture, made picturesstore.MadePicture, cause error,
) {
	stopped := ctx.Err() != nil
	log := p.deps.Log.With("org", job.org, "media", job.Media, "attempt", taken.Attempt)
	giveBack := func(backoff time.Duration, slow bool, reason string) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			return picturesstore.ReturnPicture(
				ctx, p.db, job.org, job.PictureKey, taken.Attempt, backoff, slow, reason,
			)
		}
	}
	var refusal *picture.Refusal
	var write func(context.Context) (bool, error)
	switch {
	case cause == nil:
		p.made.Add(1)
		write = func(ctx context.Context) (kept bool, err error) {
			kept, err = picturesstore.KeepPicture(ctx, p.db, job.org, job.PictureKey, taken.Attempt, made)
			if err != nil {
				return kept, err
			}
			return kept, p.deleteUnused(ctx, taken, made, kept)
		}
	case errors.As(cause, &refusal):
		p.failed.Add(1)
		log.Warn("an image cannot be made smaller", "error", cause)
		reason := taken.FileName() + " " + refusal.Reason + "."
		write = func(ctx context.Context) (bool, error) {
			return picturesstore.FailPicture(ctx, p.db, job.org, job.PictureKey, taken.Attempt, reason)
		}
	case stopped:
		write = giveBack(0, false, "")
	default:
		p.returned.Add(1)
		log.Error("cannot convert a picture; retrying", "error", cause)
		backoff := min(maxPictureBackoff, time.Second<<min(taken.Attempt, 20))
		slow := errors.Is(cause, context.DeadlineExceeded)
		write = giveBack(backoff, slow, "An image of this post could not be read.")
	}
	p.writeOutcome(context.WithoutCancel(ctx), job, log, write)
}

// writeOutcome calls write, which records the outcome of an attempt. If all the organization's
// connections are in use, writeOutcome returns, and a goroutine calls write again as soon as a
// connection is free.
func (p *Maker) writeOutcome(
	ctx context.Context, job pictureJob, log *slog.Logger, write func(context.Context) (bool, error),
) {
	try := func(ctx context.Context, last bool) (busy bool) {
		ctx, cancel := context.WithTimeout(ctx, storeTime)
		defer cancel()
		_, err := write(ctx)
		busy = pg.IsOrgBusy(err)
		if err != nil && (last || !busy) {
			log.Error("cannot record the outcome of a picture; it will be converted again", "error", err)
		}
		return busy
	}
	if try(pg.WithOrgWait(ctx, pictureWait), false) {
		p.postpone(job.org)
		p.ending.Go(func() { _ = try(ctx, true); p.notify(job) })
	}
}

// deleteUnused deletes files that no row refers to. If the attempt's picture was kept, it deletes
// the files of earlier attempts. If the picture was not kept, for example because the lease had
// expired, it deletes the attempt's own file.
func (p *Maker) deleteUnused(
	ctx context.Context, taken picturesstore.TakenPicture, made picturesstore.MadePicture, kept bool,
) error {
	if !kept {
		return p.deps.Blobs.Delete(ctx, made.BlobKey)
	}
	var errs []error
	for n := 1; n < taken.Attempt; n++ {
		errs = append(errs, p.deps.Blobs.Delete(ctx, taken.DerivedKey(taken.Spec, n)))
	}
	return errors.Join(errs...)
}
