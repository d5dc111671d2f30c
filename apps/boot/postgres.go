package boot

import (
	"context"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/migrations"
	"crier/platform/pg"
)

// storage opens, checks and closes the data stores: Postgres, files and Redis.
type storage struct{ *App }

// openPostgres creates the pools but does not connect. checkSchema is the first part to connect.
func (a storage) openPostgres(ctx context.Context) (err error) {
	a.db, err = pg.Open(context.WithoutCancel(ctx), a.cfg.Postgres)
	return err
}

// openHealthDB opens the pools for the Postgres health check. The check needs a separate
// connection, because all connections in the other pools can be busy for seconds during a burst,
// even if Postgres is healthy.
func (a storage) openHealthDB(ctx context.Context) (err error) {
	a.healthDB, err = pg.Open(context.WithoutCancel(ctx), a.cfg.Postgres)
	if err != nil {
		return err
	}
	a.health.Add("postgres", a.checkPostgres)
	return nil
}

// openQueueDB opens the pools for queue statistics. Only the clock role's pool is used, with one
// connection.
func (a storage) openQueueDB(ctx context.Context) (err error) {
	cfg := a.cfg.Postgres
	cfg.MaxConns = pg.FewestConns
	a.queueDB, err = pg.Open(context.WithoutCancel(ctx), cfg)
	return err
}

// closing returns a Stop function that closes a database. It takes a pointer to the field because
// the list of parts is built before the database is opened.
func closing(db **pg.DB) func(context.Context) error {
	return func(context.Context) error {
		(*db).Close()
		return nil
	}
}

// databaseWait is how long a part waits at startup for a database that is not ready.
const databaseWait = 30 * time.Second

// patient returns a function that calls start and retries it while the database is starting or is
// too busy to respond. The retries end after databaseWait. A failed attempt must leave nothing
// behind.
func (a *App) patient(start func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		waited, cancel := context.WithTimeout(ctx, databaseWait)
		defer cancel()
		for {
			err := start(ctx)
			if err == nil || !pg.IsSlow(err) || clock.Sleep(waited, time.Second) != nil {
				return err
			}
			a.log.Warn("the database is starting or too busy to answer; trying again", "error", err)
		}
	}
}

// checkSchema connects to the database. It returns Unavailable if the database cannot be reached or
// its schema is older than this binary requires, and Conflict if the database has a different
// baseline.
func (a storage) checkSchema(ctx context.Context) error {
	have, want, err := migrations.Version(ctx, a.schema())
	if err != nil {
		return err
	}
	if have < want {
		return fault.New(fault.Unavailable, "boot.checkSchema",
			"The database is not up to date: run `crier migrate` first.")
	}
	return a.db.Ping(ctx)
}

func (a storage) schema() migrations.Config {
	return migrations.Config{URL: a.cfg.Postgres.Direct(), RolePrefix: a.cfg.Postgres.RolePrefix}
}
