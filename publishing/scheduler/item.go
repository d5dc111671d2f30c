package scheduler

import (
	"context"
	"encoding/json"
	"time"

	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/scheduler/dispatch"
)

// item returns part i in the form that connectors expect. Root is the first part of the thread, and
// Parent is the part before part i. Both may belong to earlier posts.
func (r *run) item(ctx context.Context, i int) connector.Item {
	x := r.work.Parts[i]
	item := connector.Item{
		Publication: x.ID, Due: x.Due.UTC(), CreatedAt: r.createdAt(x), Text: x.Content.Plain(),
		Settings: r.work.Settings,
		Handle:   x.Handle, Committing: x.MarkedAt,
	}
	for _, m := range x.Media {
		item.Media = append(item.Media, r.mediaOf(ctx, m.Medium, m.Alt))
	}
	before := append(append([]dispatch.Publication{}, r.work.Before...), r.work.Parts[:i]...)
	if len(before) > 0 {
		item.Root, item.Parent = refOf(before[0]), refOf(before[len(before)-1])
	}
	return item
}

// claimDateAfter is how late a post must be for its date to be the time of its first claim instead
// of its due time.
const claimDateAfter = 2 * time.Minute

// createdAt returns the creation time to send to the platform. Usually, this is the due time, which
// is part of the send's identity. For a late post on a platform that deduplicates only by key, it
// is the time of the first claim instead. That time was stored before the first call.
func (r *run) createdAt(x dispatch.Publication) time.Time {
	late := x.ClaimedAt.Sub(x.Due) > claimDateAfter
	if late && r.connector.Describe().KeyOnly && r.work.Channel.Grade == publishing.GradeIdempotent {
		return x.ClaimedAt.UTC().Truncate(time.Millisecond).Add(time.Duration(x.Position) * time.Millisecond)
	}
	return x.Due.UTC()
}

// refOf returns the stored reference to a published part. If the reference cannot be decoded, refOf
// returns a reference that contains only the release id.
func refOf(x dispatch.Publication) *connector.Ref {
	var ref connector.Ref
	if len(x.Ref) == 0 || json.Unmarshal(x.Ref, &ref) != nil {
		ref = connector.Ref{}
		if x.ReleaseID != nil {
			ref.ID = *x.ReleaseID
		}
	}
	return &ref
}

// encodeRef encodes a reference for storage. If the encoding fails, encodeRef returns {}. Little is
// lost, because the release id is stored separately.
func encodeRef(ref connector.Ref) json.RawMessage {
	out, err := json.Marshal(ref)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return out
}
