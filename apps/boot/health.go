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

// checkTimeout limits one run of a health check. Requests do not wait for it: they get the result
// of the last run.
const checkTimeout = 5 * time.Second

// checkPostgres acquires a connection. The pool pings a connection that was idle for a second.
func (a storage) checkPostgres(ctx context.Context) error {
	conn, err := a.healthDB.Pool(pg.Clock).Acquire(ctx)
	if err != nil {
		return err
	}
	conn.Release()
	return nil
}

// checkCluster fails if this process has not renewed its lease in time or sees no live process, not
// even itself.
func (a storage) checkCluster(ctx context.Context) error {
	if a.owners.LiveCount() == 0 {
		return errors.New("no live process was found")
	}
	return telemetry.Age(a.member.LastHeartbeat, a.cfg.Cluster.LeaseTTL)(ctx)
}

// checkRedis fails while Redis does not respond. Without REDIS_URL, it fails while several
// processes use the database.
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
