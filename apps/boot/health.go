package boot

import (
	"context"
	"errors"
	"time"

	"crier/platform/pg"
	"crier/platform/telemetry"
)

// checkTime is how long one run of a health check may take. Nobody waits for it: see telemetry.Health.
const checkTime = 5 * time.Second

// checkPostgres adds the check of Postgres. It has a connection of its own: in a burst every connection of the
// product's pools may be busy for seconds, and waiting for one says nothing about Postgres.
func (a *App) checkPostgres(ctx context.Context) (err error) {
	if a.probe, err = pg.Open(context.WithoutCancel(ctx), a.cfg.Postgres); err != nil {
		return err
	}
	a.health.Add("postgres", a.probe.Pool(pg.Clock).Ping)
	return nil
}

// checkCluster fails when this process has not renewed its lease in time or sees no process, itself included.
func (a *App) checkCluster(ctx context.Context) error {
	if a.member.Seen() == 0 {
		return errors.New("no process is seen")
	}
	return telemetry.Age(a.member.LastBeat, a.cfg.Cluster.TTL)(ctx)
}
