package post

import (
	"context"

	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

// Series gives the scheduler access to the series of repeated posts. It is safe for concurrent use.
type Series struct {
	DB *db.DB
	// Quota limits the number of posts per organization. It is nil on an instance without plans.
	Quota db.Quota
}

// Ended implements scheduler.Series.
func (s Series) Ended(ctx context.Context, l dispatch.Lease, limit int) ([]publishing.SeriesRef, error) {
	return poststore.EndedSeries(ctx, s.DB, l, limit)
}

// Advance implements scheduler.Series.
func (s Series) Advance(ctx context.Context, org tenancy.OrgID, series publishing.SeriesID) (wrote bool, err error) {
	return poststore.AdvanceSeries(ctx, s.DB, org, series, false, s.Quota)
}

// SetAside implements scheduler.Series.
func (s Series) SetAside(ctx context.Context, org tenancy.OrgID, series publishing.SeriesID, reason string) error {
	return poststore.SetAsideSeries(ctx, s.DB, org, series, reason)
}
