package boot

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"crier/platform/env"
	"crier/platform/pg/local"
)

const databaseStopTimeout = 10 * time.Second

// database is the Postgres server that `dev` uses. It is either a server that `dev` runs, or the
// server at DATABASE_URL, which `dev` neither starts nor stops.
type database struct {
	url    string
	server *local.Server // nil if DATABASE_URL is set
	lost   chan error    // receives at most one error, if the server cannot be restarted, and is then closed
}

// devDatabase returns the database at DATABASE_URL. If that variable is not set, devDatabase starts
// a Postgres server in the home folder and restarts the server if it ends unexpectedly.
func devDatabase(ctx context.Context, lookup env.Lookup, home string, log *slog.Logger) (*database, error) {
	d := &database{lost: make(chan error, 1)}
	if v, ok := lookup("DATABASE_URL"); ok && v != "" {
		d.url = v
		close(d.lost)
		return d, nil
	}
	server, err := local.Start(ctx, local.Config{
		Dir: filepath.Join(home, "postgres"), Log: log, Durable: true, Preload: []string{"pg_stat_statements"},
	})
	if err != nil {
		return nil, err
	}
	d.url, d.server = server.URL("crier"), server
	go func() {
		defer close(d.lost)
		// The service needs its database until the service has stopped, which is after ctx has
		// ended. Therefore, only stop makes Keep return.
		if err := server.Keep(context.WithoutCancel(ctx)); err != nil {
			d.lost <- err
		}
	}()
	return d, nil
}

// watch waits until the server has stopped. If the server could not be restarted, watch passes the
// error to fail.
func (d *database) watch(fail func(error)) {
	if err := <-d.lost; err != nil {
		fail(err)
	}
}

func (d *database) stop() error {
	if d.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), databaseStopTimeout)
	defer cancel()
	return d.server.Stop(ctx)
}
