package store

import (
	"context"
	"errors"

	"crier/platform/pg"
	"crier/publishing/db"
)

// Plan makes every idle connection of the scheduler plan its large statements, because planning a
// claim or a finish takes ten to twenty times as long as executing it. It returns the Postgres
// errors, joined; the statements also work without Plan.
func Plan(ctx context.Context, d *db.DB) error {
	return errors.Join(
		d.Plan(ctx, pg.Clock, claim, markCommitting, finish, sweep),
		d.Plan(ctx, pg.Sender, loadWork, workMedia))
}
