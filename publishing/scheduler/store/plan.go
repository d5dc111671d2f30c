package store

import (
	"context"
	"errors"

	"crier/platform/pg"
	"crier/publishing/db"
)

// Plan plans the large statements in advance on all of the scheduler's idle connections. Planning
// the statement for Claim or Finish takes ten to twenty times as long as executing it. Plan returns
// all Postgres errors, joined. The statements work even if Plan has not been called.
func Plan(ctx context.Context, d *db.DB) error {
	return errors.Join(
		d.Plan(ctx, pg.Clock, claim, markCommitting, finish, sweep),
		d.Plan(ctx, pg.Sender, loadWork, workMedia))
}
