package store

import (
	"context"
	"errors"

	"crier/platform/pg"
	"crier/publishing/db"
)

// Plan makes all of the scheduler's idle connections plan the large statements in advance, because
// planning a claim or a finish takes ten to twenty times as long as executing it. It returns all
// Postgres errors, joined. The statements also work without Plan.
func Plan(ctx context.Context, d *db.DB) error {
	return errors.Join(
		d.Plan(ctx, pg.Clock, claim, markCommitting, finish, sweep),
		d.Plan(ctx, pg.Sender, loadWork, workMedia))
}
