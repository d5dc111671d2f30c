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

// checkTimeout is the time limit for a single health check. Requests do not wait for a check; they
// get the most recent result.
const checkTimeout = 5 * time.Second

// checkPostgres acquires a connection from the pool. If the connection has been idle for more than
// a second, the pool pings it first.
func (a storage) checkPostgres(ctx context.Context) error {
	conn, err := a.healthDB.Pool(pg.Clock).Acquire(ctx)
	if err != nil {
		return err
	}
	conn.Release()
	return nil
}

// checkCluster returns an error if this process has not renewed its lease in time, or if it sees no
// live process, not even itself.
func (a storage) checkCluster(ctx context.Context) error {
	if a.owners.LiveCount() == 0 {
		return errors.New("no live process was found")
	}
	return telemetry.Age(a.member.LastHeartbeat, a.cfg.Cluster.LeaseTTL)(ctx)
}

// checkRedis returns an error while Redis does not respond. If REDIS_URL is not set, it returns an
// error while more than one process uses the database.
func (a storage) checkRedis(ctx context.Context) error {
	if a.redis != nil {
		return a.redis.Ping(ctx)
	}
	if n := a.owners.LiveCount(); n > 1 {
		return fault.New(fault.Unavailable, "boot.checkRedis", fmt.Sprintf(
			"REDIS_URL is not set, and %d processes use the database: "+
				"each applies rate limits on its own, and revoked keys work for up to five seconds.", n))
	}
	return nil
}
