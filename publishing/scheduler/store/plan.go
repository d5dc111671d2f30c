package store

import (
	"context"
	"errors"

	"crier/platform/pg"
	"crier/publishing/db"
)

// Plan makes every idle connection of the scheduler plan its large statements, because planning a claim or a finish
// takes ten to twenty times as long as executing it. It returns the errors of Postgres; the statements work without it.
func Plan(ctx context.Context, d *db.DB) error {
	return errors.Join(
		d.Plan(ctx, pg.Clock, claim, markCommitting, finish, sweep),
		d.Plan(ctx, pg.Sender, loadWork, workMedia))
}
