package dbtest

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
)

// Occupy has slow statements of an organization use all the connections that it may have, until release is called or
// the test ends.
func Occupy(t testing.TB, d *pg.DB, org [16]byte) (release func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	begun := make(chan bool)
	half := int(d.Pool(pg.Tenant).Config().MaxConns) / 2
	for range half {
		all.Go(func() {
			begin := sync.OnceFunc(func() { begun <- true })
			for ctx.Err() == nil { // a timeout ends the statement after a while
				_ = d.InOrg(ctx, org, func(tx pgx.Tx) error { // it only ends with an error
					begin()
					_, err := tx.Exec(ctx, "select pg_sleep(600)")
					return err
				})
			}
		})
	}
	for range half {
		<-begun
	}
	release = sync.OnceFunc(func() {
		cancel()
		all.Wait()
	})
	t.Cleanup(release)
	return release
}
