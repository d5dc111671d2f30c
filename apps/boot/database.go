package boot

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"crier/platform/env"
	"crier/platform/pg/local"
)

const databaseStop = 10 * time.Second

// database is where `dev` keeps everything.
type database struct {
	url    string
	server *local.Server // nil when it is not ours
	lost   chan error    // at most one error, then closed: the server is gone for good
}

// devDatabase is DATABASE_URL, or a Postgres of our own under the home folder, which is brought back when it ends by itself.
func devDatabase(ctx context.Context, lookup env.Lookup, home string, log *slog.Logger) (*database, error) {
	d := &database{lost: make(chan error, 1)}
	if v, ok := lookup("DATABASE_URL"); ok && v != "" {
		d.url = v
		close(d.lost)
		return d, nil
	}
	server, err := local.Start(ctx, local.Config{Dir: filepath.Join(home, "postgres"), Log: log, Durable: true, Preload: []string{"pg_stat_statements"}})
	if err != nil {
		return nil, err
	}
	d.url, d.server = server.URL("crier"), server
	go func() {
		defer close(d.lost)
		// The service stops after ctx has ended and needs its database until then: only stop ends the watch.
		if err := server.Keep(context.WithoutCancel(ctx)); err != nil {
			d.lost <- err
		}
	}()
	return d, nil
}

// watch waits until the database is gone for good, and tells, or until it is stopped.
func (d *database) watch(tell func(error)) {
	if err := <-d.lost; err != nil {
		tell(err)
	}
}

func (d *database) stop() error {
	if d.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), databaseStop)
	defer cancel()
	return d.server.Stop(ctx)
}
