package boot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"crier/platform/fault"
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
	a.health.Add("postgres", func(ctx context.Context) error {
		conn, err := a.probe.Pool(pg.Clock).Acquire(ctx) // pings a connection that was not used for a second
		if err == nil {
			conn.Release()
		}
		return err
	})
	return nil
}

// checkCluster fails when this process has not renewed its lease in time or sees no process, itself included.
func (a *App) checkCluster(ctx context.Context) error {
	if a.member.LiveCount() == 0 {
		return errors.New("no process is seen")
	}
	return telemetry.Age(a.member.LastHeartbeat, a.cfg.Cluster.TTL)(ctx)
}

// checkRedis fails while Redis does not answer. Without REDIS_URL it fails while several processes use the database.
func (a *App) checkRedis(ctx context.Context) error {
	if a.redis != nil {
		return a.redis.Ping(ctx)
	}
	if n := a.member.LiveCount(); n > 1 {
		words := fmt.Sprintf("REDIS_URL is not set, and %d processes use the database: each keeps rates of its own, and revoked keys work for up to five seconds.", n)
		return fault.New(fault.Unavailable, "boot.checkRedis", words)
	}
	return nil
}
