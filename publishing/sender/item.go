package sender

import (
	"context"
	"encoding/json"
	"time"

	"crier/publishing"
	"crier/publishing/connector"
)

// item is the connector's view of a part.
func (r *run) item(ctx context.Context, i int) connector.Item {
	x := r.w.Parts[i]
	item := connector.Item{
		Publication: x.ID, Due: x.Due.UTC(), CreatedAt: r.createdAt(x), Text: x.Content.Plain(), Settings: r.w.Settings,
		Handle: x.Handle, Committing: x.MarkedAt,
	}
	for _, m := range x.Media {
		item.Media = append(item.Media, r.picture(ctx, m.Medium, m.Alt))
	}
	before := append(append([]publishing.Publication{}, r.w.Before...), r.w.Parts[:i]...)
	if len(before) > 0 {
		item.Root, item.Parent = decode(before[0]), decode(before[len(before)-1])
	}
	return item
}

// lateCreated is how late a post must be to be dated by its claim instead of its due time.
const lateCreated = 2 * time.Minute

// createdAt is the time that a platform is told. It is the due time, which is part of the identity of the send,
// except of a post that is late on a platform that de-duplicates by key alone: there it is the time of the first
// claim, which was stored before the first call.
func (r *run) createdAt(x publishing.Publication) time.Time {
	late := x.ClaimedAt.Sub(x.Due) > lateCreated
	if late && r.c.Describe().KeyOnly && r.w.Channel.Grade == publishing.GradeIdempotent {
		return x.ClaimedAt.UTC().Truncate(time.Millisecond).Add(time.Duration(x.Position) * time.Millisecond)
	}
	return x.Due.UTC()
}

func decode(x publishing.Publication) *connector.Ref {
	var ref connector.Ref
	if len(x.Ref) == 0 || json.Unmarshal(x.Ref, &ref) != nil {
		ref = connector.Ref{}
		if x.ReleaseID != nil {
			ref.ID = *x.ReleaseID
		}
	}
	return &ref
}

func encode(ref connector.Ref) json.RawMessage {
	out, err := json.Marshal(ref)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return out
}
