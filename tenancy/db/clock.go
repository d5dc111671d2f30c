package db

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/fault"
	"crier/platform/pg"
)

const databaseTime = `-- tenancy.DatabaseTime
select clock_timestamp()`

// DatabaseTime returns the database's current time. It returns Postgres errors unchanged.
func DatabaseTime(ctx context.Context, d *DB) (now time.Time, err error) {
	err = d.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(databaseTime).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
	})
	return now, err
}

// Time returns the database's current time, which is the same for all processes. If a clock was
// injected, Time returns that clock's time instead.
func (d *DB) Time(ctx context.Context, op string) (time.Time, error) {
	if d.ClockInjected {
		return d.clock.Now(), nil
	}
	now, err := DatabaseTime(ctx, d)
	return now, Fault(op, err)
}

// MaxSkew is the maximum allowed difference between the database's clock and the clock of a process
// that purges rows.
const MaxSkew = 5 * time.Minute

// CheckClock returns fault.Unavailable if this process's clock differs from the database's clock by
// more than MaxSkew. A larger difference could make rows look expired when they are not.
func (d *DB) CheckClock(ctx context.Context, op string) error {
	database, err := d.Time(ctx, op)
	if err != nil {
		return err
	}
	skew := d.clock.Now().Sub(database).Round(time.Second)
	if skew.Abs() > MaxSkew {
		return fault.Wrap(fault.Unavailable, op, "Nothing is deleted while the clock of this process is wrong.",
			fmt.Errorf("it differs from the clock of the database by %s", skew))
	}
	return nil
}
